def for_each_online_cpu(prog):
    return iter([0, 1, 2, 5])


def for_each_possible_cpu(prog):
    return iter(range(8))


def for_each_present_cpu(prog):
    return iter([0, 1, 2, 5])
