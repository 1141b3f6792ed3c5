# The profiler's counts.
x = torch.ones(4, 4, requires_grad=True)
with torch.autograd.profiler.profile() as prof:
    for _ in range(100):
        y = x**2
        z = y.sum()
        z.backward()
counts = {e.key: e.count for e in prof.key_averages()}
print(counts["aten::pow"] >= 100, counts["aten::sum"])
text = prof.key_averages().table(sort_by="self_cpu_time_total")
print(text.splitlines()[1].split()[:2])
