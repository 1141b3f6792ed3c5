"""`torch.nn.Module`: registration, hooks, state, and what may be done with a module."""

from __future__ import annotations

import copy
import io
import pickle
from collections import OrderedDict
from typing import Any

import pytest

import srcgrad.torch as torch
from srcgrad.torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.second = nn.Linear(3, 1, bias=False)
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("cache", torch.ones(2), persistent=False)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Any, gain: float = 1.0) -> Any:
        return self.second(self.first(x).tanh()) * self.scale * gain


# --- registration -------------------------------------------------------------------------------------
def test_attributes_are_registered_in_order() -> None:
    net = Net()
    assert [name for name, _ in net.named_parameters()] == ["scale", "first.weight", "first.bias", "second.weight"]
    assert [name for name, _ in net.named_parameters(prefix="p", recurse=False)] == ["p.scale"]
    assert [name for name, _ in net.named_buffers()] == ["count", "cache"]
    assert [name for name, _ in net.named_children()] == ["first", "second"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "second"]
    assert list(net.state_dict()) == ["scale", "count", "first.weight", "first.bias", "second.weight"]
    assert {"first", "scale", "count", "forward", "training"} <= set(dir(net))


def test_shared_parameters_are_listed_once() -> None:
    net = Net()
    net.third = nn.Linear(3, 1, bias=False)
    net.third.weight = net.second.weight
    assert len(list(net.parameters())) == 4
    assert len(list(net.named_parameters(remove_duplicate=False))) == 5
    assert list(net.state_dict())[-1] == "third.weight"


def test_replacing_and_deleting_attributes_changes_what_is_registered() -> None:
    net = Net()
    net.scale = None
    assert "scale" not in dict(net.named_parameters())
    assert net.scale is None
    del net.first
    assert [name for name, _ in net.named_modules()] == ["", "second"]
    net.count = nn.Parameter(torch.ones(1))
    assert [name for name, _ in net.named_buffers()] == ["cache"]
    assert [name for name, _ in net.named_parameters()] == ["count", "second.weight"]
    net.cache = torch.zeros(3)
    assert net.get_buffer("cache").shape == (3,)
    net.kept = nn.Buffer(torch.ones(1), persistent=False)
    assert "kept" in dict(net.named_buffers())
    assert "kept" not in net.state_dict()


def test_parts_are_found_by_their_dotted_names() -> None:
    net = nn.Sequential(Net(), nn.ReLU())
    assert net.get_submodule("0.first") is net[0].first
    assert net.get_submodule("") is net
    assert net.get_parameter("0.first.bias") is net[0].first.bias
    assert net.get_buffer("0.count") is net[0].count
    net.set_submodule("0.first", nn.Identity())
    assert isinstance(net[0].first, nn.Identity)
    for find, name in ((net.get_submodule, "0.x"), (net.get_parameter, "0.count"), (net.get_buffer, "0.scale")):
        with pytest.raises(AttributeError):
            find(name)


@pytest.mark.parametrize(
    ("name", "kind"), [("a.b", KeyError), ("", KeyError), ("forward", KeyError), (3, TypeError), ("first", KeyError)]
)
def test_names_that_cannot_be_registered(name: Any, kind: type[Exception]) -> None:
    net = Net()
    for register in (net.register_parameter, net.register_buffer):
        with pytest.raises(kind):
            register(name, None)


def test_results_of_parameters_are_plain_tensors() -> None:
    weight = nn.Parameter(torch.ones(2))
    assert type(weight * 2) is torch.Tensor
    assert type(weight.detach()) is torch.Tensor
    assert type(weight.data) is torch.Tensor
    assert isinstance(weight, torch.Tensor)
    twin = copy.deepcopy(weight)
    assert type(twin) is nn.Parameter
    assert twin.requires_grad
    twin.data.add_(1)
    assert weight.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="Only Tensors of floating point"):
        nn.Parameter(torch.tensor(1))
    with pytest.raises(TypeError, match="must be a Tensor"):
        nn.Parameter([1.0])  # type: ignore[arg-type]


def test_a_parameter_shares_the_memory_it_is_made_of() -> None:
    data = torch.zeros(2)
    weight = nn.Parameter(data)
    data.add_(1)
    assert weight.tolist() == [1.0, 1.0]


# --- changing -----------------------------------------------------------------------------------------
def test_train_and_eval_reach_every_module() -> None:
    net = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
    assert net.eval() is net
    assert not any(module.training for module in net.modules())
    assert all(module.training for module in net.train().modules())


def test_conversion_keeps_the_parameters_and_converts_their_gradients() -> None:
    net = Net()
    net.register_buffer("steps", torch.zeros((), dtype=torch.int64))
    before = list(net.parameters())
    net(torch.ones(1, 2)).sum().backward()
    assert net.double() is net
    assert all(a is b for a, b in zip(before, net.parameters(), strict=True))
    assert {p.dtype for p in net.parameters()} == {torch.float64}
    assert net.scale.grad.dtype == torch.float64
    assert (net.count.dtype, net.steps.dtype) == (torch.float64, torch.int64)
    assert net.to(torch.float32).scale.dtype == torch.float32
    assert net.to("cpu").half().scale.dtype == torch.float16
    assert net.float().to(torch.zeros(1, dtype=torch.float64)).scale.dtype == torch.float64
    with pytest.raises(TypeError, match="only accepts floating point"):
        net.to(torch.int64)
    with pytest.raises(RuntimeError, match="CPU"):
        net.cuda()
    with pytest.raises(RuntimeError, match="CPU"):
        net.to("cuda")


def test_zero_grad_and_requires_grad() -> None:
    net = Net()
    net(torch.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.scale.grad.tolist() == [0.0]
    net.zero_grad()
    assert net.scale.grad is None
    net.requires_grad_(False)
    assert not net(torch.ones(1, 2)).requires_grad


def test_apply_visits_children_first() -> None:
    seen: list[str] = []
    net = Net()
    assert net.apply(lambda module: seen.append(type(module).__name__)) is net
    assert seen == ["Linear", "Linear", "Net"]


def test_modules_are_copied_and_pickled_with_what_they_share() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert twin[1].weight is twin[0].weight
        assert twin[0].weight is not net[0].weight
        assert twin[0].weight.tolist() == net[0].weight.tolist()
        assert len(list(twin.parameters())) == 3


# --- state --------------------------------------------------------------------------------------------
def test_a_state_dict_shares_memory_and_loads_into_another_module() -> None:
    net, other = Net(), Net()
    state = net.state_dict()
    assert type(state["scale"]) is torch.Tensor
    assert not state["scale"].requires_grad
    state["scale"].fill_(7.0)
    assert net.scale.item() == 7.0
    assert net.state_dict(keep_vars=True)["scale"] is net.scale
    found = other.load_state_dict(state)
    assert str(found) == "<All keys matched successfully>"
    assert other.first.weight.tolist() == net.first.weight.tolist()
    assert other.first.weight is not net.first.weight
    assert state._metadata["first"] == {"version": 1}


def test_a_saved_state_dict_is_loaded_again() -> None:
    net, other, file = Net(), Net(), io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    assert other.first.weight.tolist() == net.first.weight.tolist()


def test_what_does_not_fit_is_listed() -> None:
    net = nn.Linear(3, 2)
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict({"weight": torch.ones(3, 3), "c": torch.ones(1)})
    assert caught.value.message == (  # type: ignore[attr-defined]
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "bias". \n'
        '\tUnexpected key(s) in state_dict: "c". \n'
        "\tsize mismatch for weight: copying a param with shape torch.Size([3, 3]) from checkpoint, the shape in "
        "current model is torch.Size([2, 3])."
    )
    found = net.load_state_dict({"weight": torch.ones(2, 3), "c": torch.ones(1)}, strict=False)
    assert repr(found) == "_IncompatibleKeys(missing_keys=['bias'], unexpected_keys=['c'])"
    assert net.weight.tolist() == [[1.0] * 3] * 2
    with pytest.raises(TypeError, match="dict-like"):
        net.load_state_dict([])


def test_assigned_tensors_take_the_place_of_the_values() -> None:
    net = nn.Linear(2, 1, bias=False)
    given = torch.ones(1, 2, dtype=torch.float64)
    net.load_state_dict({"weight": given}, assign=True)
    assert net.weight.dtype == torch.float64
    given.fill_(3.0)
    assert net.weight.tolist() == [[3.0, 3.0]]


def test_state_hooks_and_extra_state() -> None:
    class Extra(nn.Linear):
        def get_extra_state(self) -> Any:
            return {"k": self.k}

        def set_extra_state(self, state: Any) -> None:
            self.k = state["k"]

    net = Extra(1, 1)
    net.k = 3
    net.register_state_dict_post_hook(lambda module, state, prefix, _: state.update({prefix + "more": 1}))
    state = net.state_dict()
    assert list(state) == ["weight", "bias", "_extra_state", "more"]
    other = Extra(1, 1)
    other.register_load_state_dict_pre_hook(lambda module, state, *rest: state.pop("more"))
    seen: list[Any] = []
    other.register_load_state_dict_post_hook(lambda module, keys: seen.append(keys.missing_keys))
    other.load_state_dict(state)
    assert (other.k, seen) == (3, [[]])


# --- hooks --------------------------------------------------------------------------------------------
def test_forward_hooks_change_arguments_and_results() -> None:
    net = nn.Linear(1, 1)
    nn.init.ones_(net.weight)
    nn.init.zeros_(net.bias)
    order: list[str] = []
    net.register_forward_pre_hook(lambda m, args: order.append("pre") or (args[0] * 2,))
    first = net.register_forward_pre_hook(lambda m, args: order.append("first"), prepend=True)
    net.register_forward_hook(lambda m, args, out: order.append("post") or out + args[0])
    assert net(torch.ones(1, 1)).item() == 4.0
    assert order == ["first", "pre", "post"]
    first.remove()
    net(torch.ones(1, 1))
    assert order[3:] == ["pre", "post"]


def test_forward_hooks_with_keywords_and_after_errors() -> None:
    net = Net()
    net.register_forward_pre_hook(lambda m, args, kwargs: (args, {"gain": 0.0}), with_kwargs=True)
    seen: list[Any] = []
    net.register_forward_hook(lambda m, args, kwargs, out: seen.append((kwargs["gain"], out)), with_kwargs=True)
    assert net(torch.ones(1, 2), gain=3.0).item() == 0.0
    assert seen[0][0] == 0.0
    failing = nn.Linear(1, 1)
    called: list[Any] = []
    failing.register_forward_hook(lambda m, args, out: called.append(out), always_call=True)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        failing(torch.ones(1, 3))
    assert called == [None]


def test_backward_hooks_see_and_replace_the_gradients() -> None:
    net = nn.Linear(2, 1, bias=False)
    nn.init.ones_(net.weight)
    seen: list[Any] = []
    net.register_full_backward_pre_hook(lambda m, out: seen.append(out[0].tolist()) or (out[0] * 3,))
    handle = net.register_full_backward_hook(lambda m, into, out: seen.append(out[0].tolist()) or (into[0] * 10,))
    x = torch.ones(1, 2, requires_grad=True)
    y = net(x)
    assert y.grad_fn.name() == "BackwardHookFunctionBackward"
    y.sum().backward()
    assert seen == [[[1.0]], [[3.0]]]
    assert x.grad.tolist() == [[30.0, 30.0]]
    assert net.weight.grad.tolist() == [[3.0, 3.0]]
    handle.remove()
    x.grad = None
    net(x).sum().backward()
    assert x.grad.tolist() == [[3.0, 3.0]]


def test_backward_hooks_of_inputs_without_gradients() -> None:
    net = nn.Linear(2, 1)
    seen: list[Any] = []
    net.register_full_backward_hook(lambda m, into, out: seen.append((into, out[0].tolist())))
    net(torch.ones(1, 2)).sum().backward()
    assert seen == [((None,), [[1.0]])]


def test_backward_hooks_fire_once_per_call() -> None:
    net = nn.Linear(1, 1)
    calls: list[int] = []
    net.register_full_backward_hook(lambda *_: calls.append(1))
    x = torch.ones(1, 1, requires_grad=True)
    net(net(net(x))).sum().backward()
    assert len(calls) == 3


# --- containers ---------------------------------------------------------------------------------------
def test_sequential_is_a_list_of_modules() -> None:
    net = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
    assert len(net) == 3
    assert isinstance(net[-1], nn.Linear)
    assert list(net[1:].state_dict()) == ["2.weight", "2.bias"]
    net.append(nn.Tanh()).insert(1, nn.Sigmoid())
    assert [type(m).__name__ for m in net] == ["Linear", "Sigmoid", "ReLU", "Linear", "Tanh"]
    del net[1]
    net[0] = nn.Identity()
    net.extend([nn.ReLU()])
    assert [type(m).__name__ for m in net] == ["Identity", "ReLU", "Linear", "Tanh", "ReLU"]
    assert isinstance(net.pop(-1), nn.ReLU)
    assert len(net + net) == 8
    assert len(nn.Sequential(nn.ReLU()) * 3) == 3
    named = nn.Sequential(OrderedDict(a=nn.Linear(1, 1), b=nn.ReLU()))
    assert list(named.state_dict()) == ["a.weight", "a.bias"]
    assert isinstance(named.b, nn.ReLU)
    for wrong in (lambda: net[9], lambda: net.insert(9, nn.ReLU())):
        with pytest.raises(IndexError):
            wrong()
    with pytest.raises(TypeError, match="is not a Module subclass"):
        nn.Sequential(3)


def test_module_lists_and_dictionaries() -> None:
    layers = nn.ModuleList([nn.Linear(1, 1)])
    layers += [nn.ReLU()]
    layers.extend([nn.Tanh()]).insert(0, nn.Identity())
    assert [type(m).__name__ for m in layers] == ["Identity", "Linear", "ReLU", "Tanh"]
    assert len(layers[1:3]) == 2
    with pytest.raises(NotImplementedError):
        layers(1)
    table = nn.ModuleDict({"a": nn.Linear(1, 1)})
    table["b"] = nn.ReLU()
    table.update([("c", nn.Tanh())])
    assert (list(table), "b" in table, len(table)) == (["a", "b", "c"], True, 3)
    assert isinstance(table.pop("c"), nn.Tanh)
    del table["b"]
    assert list(table.keys()) == ["a"]
    with pytest.raises(KeyError, match="already exists"):
        table["keys"] = nn.ReLU()


def test_parameter_lists_and_dictionaries() -> None:
    values = nn.ParameterList([torch.ones(1), nn.Parameter(torch.zeros(2))])
    values.append(torch.ones(3))
    values[0] = torch.zeros(4)
    assert [p.shape[0] for p in values] == [4, 2, 3]
    assert all(isinstance(p, nn.Parameter) for p in values)
    assert list(values.state_dict()) == ["0", "1", "2"]
    assert len(values[:2]) == 2
    table = nn.ParameterDict({"b": torch.ones(1)})
    table["a"] = torch.ones(2)
    assert list(table) == ["b", "a"]
    assert isinstance(table.pop("b"), nn.Parameter)
    assert table.get("z") is None
    assert [name for name, _ in table.named_parameters()] == ["a"]
    with pytest.raises(KeyError):
        table["z"]


def test_forward_and_attributes_before_init_are_errors() -> None:
    class Early(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(torch.ones(1))

    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__\(\) call"):
        Early()
    with pytest.raises(NotImplementedError, match='missing the required "forward" function'):
        nn.Module()(1)
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'x'"):
        _ = nn.Linear(1, 1).x


def test_a_state_dict_is_an_ordered_dict_with_metadata() -> None:
    state = torch.nn.Linear(2, 3).state_dict()
    assert type(state).__name__ == "OrderedDict"
    assert state._metadata == {"": {"version": 1}}


def test_the_gradient_of_a_layer_is_a_product_in_the_graph() -> None:
    x = torch.ones(3, 2, requires_grad=True)
    (grad,) = torch.autograd.grad(torch.nn.Linear(2, 1)(x).pow(2).sum(), x, create_graph=True)
    assert grad.grad_fn.name() == "MmBackward0"
