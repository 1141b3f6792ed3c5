# Anomaly detection.
import warnings

warnings.simplefilter("ignore")


class MyFunc(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inp):
        return inp.clone()

    @staticmethod
    def backward(ctx, gO):
        raise RuntimeError("Some error in backward")


def run_fn(a):
    out = MyFunc.apply(a)
    return out.sum()


inp = torch.tensor([[1.0, 2.0]], requires_grad=True)
try:
    with torch.autograd.detect_anomaly():
        run_fn(inp).backward()
except RuntimeError as error:
    print(str(error).splitlines()[0])
x = torch.tensor([-1.0, 4.0], requires_grad=True)
try:
    with torch.autograd.detect_anomaly():
        torch.sqrt(x).sum().backward()
except RuntimeError as error:
    print(str(error).splitlines()[0])
print(torch.is_anomaly_enabled())
