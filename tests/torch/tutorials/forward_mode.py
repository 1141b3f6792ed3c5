# Forward mode with dual numbers.
import torch.autograd.forward_ad as fwAD

primal = torch.tensor([1.0, 2.0])
tangent = torch.tensor([0.5, -1.0])
with fwAD.dual_level():
    dual = fwAD.make_dual(primal, tangent)
    out = dual**2 + torch.sin(dual)
    found = fwAD.unpack_dual(out)
    print(found.primal, found.tangent)
    print(fwAD.unpack_dual(primal).tangent)
    m = fwAD.make_dual(torch.eye(2), torch.ones(2, 2))
    print(fwAD.unpack_dual((m @ dual).sum()).tangent)
