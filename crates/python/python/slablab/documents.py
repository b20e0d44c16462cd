"""Types of the answers: made by `slablab generate types`."""

from typing import Any, Literal, TypedDict


class BenchProgram1Host(TypedDict):
    """The machine, the engine that slablab was, and how it was built."""

    build: str
    cpu: str | None
    engine: str
    kernel: str | None
    name: str | None


class BenchProgram1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class BenchProgram1RowCpuMs(TypedDict):
    """User and system time of the program and the processes that it waited for, in ms."""

    high: float
    """The upper end of the interval."""
    low: float
    """The lower end of the interval."""
    median: float
    """The median."""


class BenchProgram1RowCpuRatio(TypedDict):
    """CPU time over that of the first allocator, block by block; null for the first."""

    high: float
    """The upper end of the interval."""
    low: float
    """The lower end of the interval."""
    median: float
    """The median."""


class BenchProgram1RowPeakMb(TypedDict):
    """The largest resident set of one process, in MB."""

    high: float
    """The upper end of the interval."""
    low: float
    """The lower end of the interval."""
    median: float
    """The median."""


class BenchProgram1RowPeakRatio(TypedDict):
    """The same of the peak."""

    high: float
    """The upper end of the interval."""
    low: float
    """The lower end of the interval."""
    median: float
    """The median."""


class BenchProgram1RowSample(TypedDict):
    """A run."""

    cpu_s: float
    """User and system time, in s."""
    exit_code: int | None
    """The exit code; null if a signal ended it."""
    faults: int
    """Page faults."""
    peak_bytes: int
    """The largest resident set of one process, in bytes."""
    system_s: float
    """System time, in s."""
    user_s: float
    """User time, in s."""
    wall_s: float
    """From the start to the end, in s."""


class BenchProgram1RowWallMs(TypedDict):
    """From the start to the end, in ms."""

    high: float
    """The upper end of the interval."""
    low: float
    """The lower end of the interval."""
    median: float
    """The median."""


class BenchProgram1RowWallRatio(TypedDict):
    """The same of wall time."""

    high: float
    """The upper end of the interval."""
    low: float
    """The lower end of the interval."""
    median: float
    """The median."""


class BenchProgram1Row(TypedDict):
    """An allocator's figures."""

    allocator: str
    """The allocator."""
    cpu_ms: BenchProgram1RowCpuMs
    """User and system time of the program and the processes that it waited for, in ms."""
    cpu_ratio: BenchProgram1RowCpuRatio | None
    """CPU time over that of the first allocator, block by block; null for the first."""
    faults: float
    """Page faults: the median."""
    is_twin: bool
    """Whether it is the first allocator a second time, to show what the machine alone changes."""
    library: str
    """The file that was preloaded."""
    peak_mb: BenchProgram1RowPeakMb
    """The largest resident set of one process, in MB."""
    peak_ratio: BenchProgram1RowPeakRatio | None
    """The same of the peak."""
    samples: list[BenchProgram1RowSample]
    """The samples, one for each block."""
    user_ms: float
    """Of it, outside of the kernel, in ms: the median."""
    wall_ms: BenchProgram1RowWallMs
    """From the start to the end, in ms."""
    wall_ratio: BenchProgram1RowWallRatio | None
    """The same of wall time."""


class BenchProgram1(TypedDict):
    """slablab bench -- PROGRAM: a program under several allocators"""

    answer: str
    """The answer in one sentence."""
    blocks: int
    """Complete blocks: in each, the program ran once under every allocator."""
    command: str
    """The program and its arguments."""
    host: BenchProgram1Host
    """The machine, the engine that slablab was, and how it was built."""
    interval_percent: int
    """What the intervals contain."""
    load_after: float
    """Runnable processes after the run."""
    load_before: float
    """Runnable processes before the run."""
    no_verdict: list[str]
    """Why there is no verdict; empty if there is one."""
    notes: list[str]
    """What a reader must know of the runs."""
    program: BenchProgram1Program
    """The program that wrote the answer, and its version."""
    rows: list[BenchProgram1Row]
    schema: Literal["slablab.bench-program.1"]
    seed: int
    """The seed of the order."""


class Bench1Host(TypedDict):
    """The machine, the engine that slablab was, and how it was built."""

    build: str
    cpu: str | None
    engine: str
    kernel: str | None
    name: str | None


class Bench1MemoryItem(TypedDict):
    """Resident memory of an allocator."""

    figures: dict[str, float | None]
    """Medians over the processes, by name and unit; null for what was not measured."""
    name: str
    processes: int
    role: Literal["ours"] | Literal["peer"] | Literal["twin"] | Literal["floor"]
    """The role of a contestant in a comparison."""


class Bench1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class Bench1WorkloadCellCallsFree(TypedDict):
    """Of frees."""

    above_10_us: int
    """The number of calls that took longer than 10 us."""
    calls: int
    """The number of calls, without those of `left_out`."""
    left_out: int
    """Calls that are left out, because the thread was off its CPU meanwhile."""
    longest_ns: float
    """The longest call in ns."""
    mean_ns: float
    """The mean in ns."""
    p50_ns: float
    """The median in ns."""
    p99_999_ns: float
    """99.999 % of the calls took no longer, in ns."""
    p99_99_ns: float
    """99.99 % of the calls took no longer, in ns."""
    p99_9_ns: float
    """99.9 % of the calls took no longer, in ns."""
    p99_ns: float
    """99 % of the calls took no longer, in ns."""


class Bench1WorkloadCellCallsMalloc(TypedDict):
    """Of allocations, without the first write to the block."""

    above_10_us: int
    """The number of calls that took longer than 10 us."""
    calls: int
    """The number of calls, without those of `left_out`."""
    left_out: int
    """Calls that are left out, because the thread was off its CPU meanwhile."""
    longest_ns: float
    """The longest call in ns."""
    mean_ns: float
    """The mean in ns."""
    p50_ns: float
    """The median in ns."""
    p99_999_ns: float
    """99.999 % of the calls took no longer, in ns."""
    p99_99_ns: float
    """99.99 % of the calls took no longer, in ns."""
    p99_9_ns: float
    """99.9 % of the calls took no longer, in ns."""
    p99_ns: float
    """99 % of the calls took no longer, in ns."""


class Bench1WorkloadCellCalls(TypedDict):
    """How long calls took, the least of each figure of all blocks, if each call was timed."""

    free: Bench1WorkloadCellCallsFree
    """Of frees."""
    malloc: Bench1WorkloadCellCallsMalloc
    """Of allocations, without the first write to the block."""


class Bench1WorkloadCellCpuNs(TypedDict):
    """CPU time per operation in ns."""

    high: float
    """The upper end of the interval."""
    low: float
    """The lower end of the interval."""
    median: float
    """The median."""


class Bench1WorkloadCellDayMoment(TypedDict):
    """A moment of a day."""

    at: float
    """The share of the day that is over, 0 to 1."""
    live_mb: float
    """Live bytes, as they were asked for, in MB."""
    resident_mb: float
    """Resident memory less that before the first request, in MB."""


class Bench1WorkloadCellDay(TypedDict):
    """The memory over a service's day, medians of all blocks, if it was one."""

    moments: list[Bench1WorkloadCellDayMoment]
    """The ends of its parts."""


class Bench1WorkloadCellProcessPeakMb(TypedDict):
    """The largest resident memory, less that before the workload, in MB."""

    high: float
    """The upper end of the interval."""
    low: float
    """The lower end of the interval."""
    median: float
    """The median."""


class Bench1WorkloadCellProcessPeakRatio(TypedDict):
    """Peak memory over that of the peer with the smallest median, in the same block; for our allocators."""

    high: float
    """The upper end of the interval."""
    low: float
    """The lower end of the interval."""
    median: float
    """The median."""


class Bench1WorkloadCellProcessSample(TypedDict):
    """The costs of a workload that had the process for itself."""

    fault_ns: float
    """CPU time of one page fault in ns: the first write to a page of new memory, by one thread."""
    faults: int
    """Page faults, of memory and of files."""
    peak_bytes: int
    """The largest resident memory during the workload, less that before it, in bytes."""
    system_ns: int
    """CPU time of all threads in the kernel, in ns."""
    user_ns: int
    """CPU time of all threads outside the kernel, in ns."""


class Bench1WorkloadCellProcess(TypedDict):
    """Peak memory and page faults, if each sample had a process of its own."""

    figures: list[float | None]
    """The other figures, medians: page faults, ns of a fault, percent of CPU time in faults and in the kernel, and ns per operation without faults ([`PROCESS_FIGURES`]). Null for what was not measured."""
    peak_mb: Bench1WorkloadCellProcessPeakMb
    """The largest resident memory, less that before the workload, in MB."""
    peak_ratio: Bench1WorkloadCellProcessPeakRatio | None
    """Peak memory over that of the peer with the smallest median, in the same block; for our allocators."""
    peak_verdict: Literal["won"] | Literal["even"] | Literal["lost"] | None
    """The verdict of `peak_ratio`."""
    samples: list[Bench1WorkloadCellProcessSample]
    """The costs, by block."""


class Bench1WorkloadCellRatio(TypedDict):
    """CPU time over the best peer's in the same block; for our allocators and the twin."""

    high: float
    """The upper end of the interval."""
    low: float
    """The lower end of the interval."""
    median: float
    """The median."""


class Bench1WorkloadCellWallNs(TypedDict):
    """Wall time per operation in ns, if several threads ran."""

    high: float
    """The upper end of the interval."""
    low: float
    """The lower end of the interval."""
    median: float
    """The median."""


class Bench1WorkloadCell(TypedDict):
    """A contestant's figures for a workload."""

    calls: Bench1WorkloadCellCalls | None
    """How long calls took, the least of each figure of all blocks, if each call was timed."""
    cpu_ns: Bench1WorkloadCellCpuNs
    """CPU time per operation in ns."""
    day: Bench1WorkloadCellDay | None
    """The memory over a service's day, medians of all blocks, if it was one."""
    evidence: str
    """How each sample was proved."""
    moved: int
    """The number of blocks in which the round trip changed more than twofold during the run."""
    name: str
    """The contestant's name."""
    pingpong_ns: list[float] | None
    """Medians of the round trip of a cache line before and after, in ns, if several threads ran."""
    process: Bench1WorkloadCellProcess | None
    """Peak memory and page faults, if each sample had a process of its own."""
    ratio: Bench1WorkloadCellRatio | None
    """CPU time over the best peer's in the same block; for our allocators and the twin."""
    role: Literal["ours"] | Literal["peer"] | Literal["twin"] | Literal["floor"]
    """The contestant's role."""
    samples_ns: list[float]
    """CPU time per operation in ns, by block."""
    verdict: Literal["won"] | Literal["even"] | Literal["lost"] | None
    """The verdict of the ratio, for our allocators; `None` if the run gives no verdicts."""
    wall_ns: Bench1WorkloadCellWallNs | None
    """Wall time per operation in ns, if several threads ran."""


class Bench1WorkloadTwin(TypedDict):
    """The twin's CPU time over that of the first of our allocators. If the interval does not contain 1, it is a false alarm."""

    high: float
    """The upper end of the interval."""
    low: float
    """The lower end of the interval."""
    median: float
    """The median."""


class Bench1Workload(TypedDict):
    """The figures of a workload."""

    about: str
    """A description in one line."""
    best_peer: str | None
    """The peer with the least CPU time, if there is a peer."""
    cells: list[Bench1WorkloadCell]
    """The cells, by contestant, in the order of tables."""
    group: Literal["single"] | Literal["threads"] | Literal["programs"] | Literal["caches"] | Literal["latency"] | Literal["service"] | Literal["floors"]
    """The group whose table has the workload."""
    leanest_peer: str | None
    """The peer with the least peak memory, if each sample had a process of its own."""
    name: str
    """The workload's name."""
    ops: int
    """The number of operations of a sample."""
    twin: Bench1WorkloadTwin | None
    """The twin's CPU time over that of the first of our allocators. If the interval does not contain 1, it is a false alarm."""


class Bench1(TypedDict):
    """slablab bench: allocators side by side"""

    answer: str
    """The answer in one sentence."""
    blocks: int
    """Complete blocks."""
    cpus: int
    """CPUs that the process may use."""
    false_alarms: int
    """Workloads in which slablab differs from its twin, which is the same code."""
    host: Bench1Host
    """The machine, the engine that slablab was, and how it was built."""
    interval_percent: int
    """What the intervals contain."""
    load_after: float
    """Runnable processes after the run."""
    load_before: float
    """Runnable processes before the run."""
    memory: list[Bench1MemoryItem]
    memory_live_bytes: int
    """Live bytes of the memory workload."""
    no_verdict: list[str]
    """Why the run gives no verdict; empty if it gives verdicts."""
    notes: list[str]
    """Workloads and samples that were left out, with the reason."""
    program: Bench1Program
    """The program that wrote the answer, and its version."""
    scale: float
    """The factor on the usual number of operations."""
    schema: Literal["slablab.bench.1"]
    seed: int
    """The seed of random numbers."""
    twins: int
    """Workloads with a twin."""
    workloads: list[Bench1Workload]


class Calibrate1CostValue(TypedDict):
    ns: float


class Calibrate1CostValue2(TypedDict):
    bytes: int


class Calibrate1CostValue3(TypedDict):
    number: int


class Calibrate1CostValue4(TypedDict):
    kind: str


class Calibrate1CostValue5(TypedDict):
    """A kernel's release: major and minor number."""

    release: str


class Calibrate1Cost(TypedDict):
    comment: str
    """The quartiles, and how they were got; empty for what was not measured."""
    distance: int | None
    """The node distance, for a cost that depends on it."""
    name: str
    """The name in a machine file."""
    source: str
    value: Calibrate1CostValue | Calibrate1CostValue2 | Calibrate1CostValue3 | Calibrate1CostValue4 | Calibrate1CostValue5


class Calibrate1Noise(TypedDict):
    """What disturbed the run."""

    disturbed: float
    """The share of blocks that took more than 1.5 times the median of their series; 0 to 1."""
    load: list[float]
    """Load average before and after."""
    other_programs: float
    """The share of the CPUs' time that other programs used; 0 to 1."""
    stolen: float
    """The share of the CPUs' time that the hypervisor gave to others; 0 to 1."""


class Calibrate1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class Calibrate1Sery(TypedDict):
    """What was measured: the median of the blocks, and the quartiles."""

    blocks: int
    ns: float
    ns_high: float
    ns_low: float
    series: str


class Calibrate1(TypedDict):
    """slablab calibrate: what this host's parts cost"""

    answer: str
    """The answer in one sentence."""
    costs: list[Calibrate1Cost]
    """The costs of a machine file."""
    cpu_model: str
    cpus: int
    doubts: list[str]
    """What contradicts what is known of every machine, in sentences."""
    kernel: str
    noise: Calibrate1Noise
    """What disturbed the run."""
    notes: list[str]
    """What was left out, and why."""
    program: Calibrate1Program
    """The program that wrote the answer, and its version."""
    rounds: int
    """How often all probes ran."""
    schema: Literal["slablab.calibrate.1"]
    seconds: float
    series: list[Calibrate1Sery]
    virtual_machine: bool


class Compare1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class Compare1TableRow(TypedDict):
    base: str
    base_n: int | None
    base_sd: None | float
    base_value: None | float
    better: str
    gain_percent: None | float
    """How much better the other value is than the base, in percent; below 0 if it is worse."""
    gain_percent_high_95: None | float
    gain_percent_low_95: None | float
    group: str
    other: str
    other_n: int | None
    other_sd: None | float
    other_value: None | float
    p: None | float
    p_holm: None | float
    """The p-value after Holm's correction over the table."""
    row: str
    table: str
    verdict: str


class Compare1Table(TypedDict):
    comparisons: int
    """The number of tests over which p-values are corrected; 0 without repeats."""
    role: str
    """answer: what is asked; detail: what differs most of much else; control: not slablab's code."""
    rows: list[Compare1TableRow]
    rows_left_out: int
    """Rows that were compared, and differ less."""
    significance: float
    summary: str
    """What the table says, in sentences."""
    test: str | None
    """The test; null without repeats."""


class Compare1(TypedDict):
    """slablab compare: results side by side"""

    answer: str
    """The answer in one sentence."""
    cautions: list[str]
    """What the tables cannot tell, in sentences."""
    columns: list[str]
    """The names of the results; the first is the base."""
    differs: dict[str, list[str | None]]
    """What differs beside the compared numbers: a value for each result, or null."""
    not_compared: list[str]
    """Engines and rows that only one result has, in sentences."""
    not_said: list[str]
    """Facts that no result says."""
    of: str
    """The schema of the results."""
    program: Compare1Program
    """The program that wrote the answer, and its version."""
    same: dict[str, str]
    """Facts with one value in all results."""
    schema: Literal["slablab.compare.1"]
    tables: list[Compare1Table]


class Description1AssumedCost(TypedDict):
    cost: str
    distance: int | None
    """The node distance, for a cost that depends on it."""


class Description1Engine(TypedDict):
    name: str
    """As the experiment names it."""
    preset: str
    """With its release and knobs."""


class Description1Estimate(TypedDict):
    """What all runs need of the host."""

    bytes_of_a_run: int
    """Memory of the largest run."""
    core_s: float


class Description1Fitted(TypedDict):
    """The parameter that is fitted; null if none is."""

    how: str
    parameter: str


class Description1Machine(TypedDict):
    cpus: int
    given: str
    """As the experiment names it."""
    memory_bytes: int
    name: str
    nodes: int
    nodes_with_memory: int
    page_bytes: int


class Description1Metric(TypedDict):
    about: str
    better: str | None
    """Which values are better, lower or higher; null if neither is."""
    name: str
    per_unit: float
    unit: str


class Description1ObjectObject(TypedDict):
    bytes: int
    cache: str
    per_operation: str
    source: str


class Description1Object(TypedDict):
    objects: list[Description1ObjectObject]
    releases: list[str]


class _Description1Parameter(TypedDict):
    about: str
    is_default: bool
    name: str
    source: str
    values: list[int | str]


class Description1Parameter(_Description1Parameter, total=False):
    """A parameter with its limits, its defaults by size, and its values in the experiment."""

    default: str | None
    defaults: dict[str, int] | None
    """The defaults of a number, by size."""
    least: int | None
    most: int | None
    words: list[str] | None
    """The words that it may be."""


class Description1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class Description1Workload(TypedDict):
    about: str
    name: str


class _Description1(TypedDict):
    answer: str
    """The answer in one sentence."""
    assumed_costs: list[Description1AssumedCost]
    """Costs of the machines that no document says."""
    cells: int
    engines: list[Description1Engine]
    estimate: Description1Estimate
    """What all runs need of the host."""
    fitted: Description1Fitted | None
    """The parameter that is fitted; null if none is."""
    machines: list[Description1Machine]
    metric: str
    """The metric that is compared first."""
    metrics: list[Description1Metric]
    name: str
    objects: list[Description1Object]
    """The kernel objects of an operation, for each group of releases that have the same ones."""
    parameters: list[Description1Parameter]
    program: Description1Program
    """The program that wrote the answer, and its version."""
    published: str | None
    """Who published figures of it, where and when."""
    repeats: int
    """Runs of each cell and placement, at least."""
    runs: int
    """Runs of all cells, at least."""
    schema: Literal["slablab.description.1"]
    seed: int
    """The seed of random numbers."""
    size: str
    title: str
    workload: Description1Workload


class Description1(_Description1, total=False):
    """slablab run --describe: what an experiment consists of"""

    placements: int | None
    """Starting states in which each cell repeats, if there are several."""
    precision_percent: float | None
    """The interval at which a cell stops, if the experiment asks for one."""
    repeats_most: int | None
    """Runs at which a cell stops in any case, if the experiment asks for an interval."""


class Doctor1Action(TypedDict):
    basis: str
    """How the range is known."""
    because: list[Literal["dominates"] | Literal["fragmented"] | Literal["tail"] | Literal["metadata"] | Literal["debugging"] | Literal["parked"] | Literal["large_kmalloc"] | Literal["meminfo_gap"] | Literal["memoryless_nodes"] | Literal["fallback"] | Literal["high_order"] | Literal["reclaimable"] | Literal["unreclaimable"] | Literal["leak"] | Literal["growth"] | Literal["cache_growth"] | Literal["dying_cgroups"] | Literal["merged"] | Literal["approximated"] | Literal["raced"] | Literal["big_pages"] | Literal["rounding"] | Literal["alloc_failed"] | Literal["out_of_memory"] | Literal["holders"] | Literal["dentries"] | Literal["suspect"] | Literal["benign"] | Literal["together"] | Literal["corruption"] | Literal["unread_row"] | Literal["call_sites"] | Literal["accounting"] | Literal["pinning_pair"] | Literal["kernel_memory"] | Literal["each_slab"]]
    """The findings that it is for."""
    command: str
    """The command to type, or the words to add to the kernel's command line."""
    cost: str
    knob: str
    optional: bool
    """Nothing needs it: it is for those who want memory back all the same."""
    saves_high_bytes: int
    """Below 0 it takes memory."""
    saves_low_bytes: int
    when: str


class Doctor1CacheGrowth(TypedDict):
    all_of_this_name: bool
    """Whether several caches of this name are taken together, as their number changed."""
    bytes: int
    bytes_per_hour: float | None
    bytes_per_hour_error: float | None
    """Its standard error; null with two points, which every line fits."""
    objects: int
    points: int | None
    r2: float | None
    slab_bytes: list[int]
    """Bytes of slabs in each snapshot, oldest first."""


class Doctor1Cache(TypedDict):
    """A cache: its counts, its split, its growth."""

    accounting_bytes: int | None
    """accounting, in slabs"""
    active_objects: int | None
    aliases: list[str]
    """Other names of the cache: it was merged."""
    alignment_bytes: int | None
    """alignment"""
    cache: str
    debugging_bytes: int | None
    """debugging"""
    free_bytes: int
    """free in slabs"""
    growth: Doctor1CacheGrowth | None
    in_use_bytes: int
    """in use"""
    loss_bytes: int
    """loss"""
    object_size_bytes: int | None
    objs_per_slab: int | None
    order: int | None
    ordinal: int
    """Which of several caches of one name: 0 for the first."""
    parked_high_bytes: int
    """parked with CPUs, at most"""
    parked_low_bytes: int
    """parked with CPUs, at least"""
    pointer_bytes: int | None
    """free pointers outside"""
    raced_bytes: int
    """counted twice, in a race"""
    reclaim: str
    slab_bytes: int
    """all caches"""
    slab_size_bytes: int | None
    slabs: int | None
    tail_bytes: int
    """tail of slabs"""
    tail_overstated_bytes: int
    """of smaller slabs, no memory"""
    total_objects: int | None
    what: str | None
    """What it is for."""


class Doctor1Cgroup(TypedDict):
    growth_bytes: int | None
    kernel_bytes: int | None
    """On version 1 of cgroups, all kernel memory."""
    name: str
    """The name of its container or of its unit."""
    path: str
    reclaimable_bytes: int | None
    unreclaimable_bytes: int | None


class Doctor1CorruptionExplainedItem(TypedDict):
    """A part of the explanation."""

    about: str
    """What it is about, in a word or two; empty if it is about the same as the part before."""
    command: str | None
    """A command that shows or changes it."""
    text: str
    """The words."""


class Doctor1Corruption(TypedDict):
    """The report for programs."""

    allocated_in: str | None
    cache: str | None
    explained: list[Doctor1CorruptionExplainedItem]
    freed_in: str | None
    line: int
    """The line of the text where it begins."""
    object: int | None
    """The address of the object."""
    object_is_of: str | None
    """The cache that the object is of, where it was freed to another."""
    words: str
    """The kernel's words."""
    written: list[int] | None
    """The first and the last byte that was written."""


class Doctor1EachSlabItem(TypedDict):
    """The slabs of one cache."""

    beyond_need: int
    """Slabs that are more than the objects in use need."""
    cache: str
    """Its name."""
    empty: int
    """Slabs without an object in use, no CPU's."""
    free_cpus: int
    """Free objects of slabs that CPUs allocate from, or have on their lists."""
    free_listed: int
    """Free objects of slabs on nodes' lists."""
    in_sheaves: int
    """Objects in sheaves."""
    in_use: int
    """Objects in use: neither free in a slab nor parked in a sheaf."""
    in_use_nearly_empty: int
    """Objects in use of those."""
    nearly_empty: int
    """Slabs that are no CPU's with at least one object in use, and at most an eighth of theirs."""
    slab_bytes: int
    """Bytes of a slab."""
    slabs: int
    """Slabs."""


class Doctor1FindingCache(TypedDict):
    cache: str
    ordinal: int
    """Which of several caches of one name: 0 for the first."""


class Doctor1Finding(TypedDict):
    bytes: int
    """0 where it is not about bytes."""
    caches: list[Doctor1FindingCache]
    """Empty if it is about the machine."""
    kind: Literal["dominates"] | Literal["fragmented"] | Literal["tail"] | Literal["metadata"] | Literal["debugging"] | Literal["parked"] | Literal["large_kmalloc"] | Literal["meminfo_gap"] | Literal["memoryless_nodes"] | Literal["fallback"] | Literal["high_order"] | Literal["reclaimable"] | Literal["unreclaimable"] | Literal["leak"] | Literal["growth"] | Literal["cache_growth"] | Literal["dying_cgroups"] | Literal["merged"] | Literal["approximated"] | Literal["raced"] | Literal["big_pages"] | Literal["rounding"] | Literal["alloc_failed"] | Literal["out_of_memory"] | Literal["holders"] | Literal["dentries"] | Literal["suspect"] | Literal["benign"] | Literal["together"] | Literal["corruption"] | Literal["unread_row"] | Literal["call_sites"] | Literal["accounting"] | Literal["pinning_pair"] | Literal["kernel_memory"] | Literal["each_slab"]
    """The kinds of findings."""
    text: str


class Doctor1GrowthGroupCache(TypedDict):
    cache: str
    ordinal: int
    """Which of several caches of one name: 0 for the first."""


class Doctor1GrowthGroup(TypedDict):
    bytes: int
    caches: list[Doctor1GrowthGroupCache]
    names: list[str]
    """For a merged cache those names that its partners point to."""
    objects: int
    reclaimable: bool
    """Whether the kernel frees such objects by itself when it needs memory."""
    steady: bool | None
    """Whether each interval has growth; null with fewer than three snapshots."""


class Doctor1GrowthTotal(TypedDict):
    all_of_this_name: bool
    """Whether several caches of this name are taken together, as their number changed."""
    bytes: int
    bytes_per_hour: float | None
    bytes_per_hour_error: float | None
    """Its standard error; null with two points, which every line fits."""
    objects: int
    points: int | None
    r2: float | None
    slab_bytes: list[int]
    """Bytes of slabs in each snapshot, oldest first."""


class Doctor1Growth(TypedDict):
    """What grew since the first snapshot."""

    groups: list[Doctor1GrowthGroup]
    """Caches that grew together."""
    hours: list[float] | None
    """Hours since the first snapshot; null if the snapshots have no time."""
    snapshots: int
    snapshots_from: list[str]
    times_from: str
    """How the times are known, or why not."""
    total: Doctor1GrowthTotal


class Doctor1KmallocClass(TypedDict):
    live_objects: int
    object_bytes: int
    requested_bytes: int


class Doctor1Kmalloc(TypedDict):
    """The cost of kmalloc's classes, by a recording."""

    allocated_bytes: int
    classes: list[Doctor1KmallocClass]
    events_lost: int
    live_objects: int
    recording: str
    requested_bytes: int
    rounding_bytes: int


class Doctor1Knob(TypedDict):
    knob: str
    """Its name for programs, equal for all releases."""
    name: str
    when: str


class Doctor1Meminfo(TypedDict):
    counters_lag_bytes: int | None
    """How much the counters behind `Slab` may lag."""
    explanation: str | None
    outside_caches_bytes: int | None
    """`Slab` less the sum of the caches; null if the input does not have all of them."""
    reclaimable_bytes: int | None
    slab_bytes: int
    unreclaimable_bytes: int | None


class Doctor1MessageCgroup(TypedDict):
    """The memory cgroup whose copy of the cache it was."""

    id: int
    name: str


class Doctor1MessageExplainedItem(TypedDict):
    """A part of the explanation."""

    about: str
    """What it is about, in a word or two; empty if it is about the same as the part before."""
    command: str | None
    """A command that shows or changes it."""
    text: str
    """The words."""


class Doctor1MessageNode(TypedDict):
    """The cache on a node."""

    free_objects: int
    """Free objects of partial slabs."""
    node: int
    objects: int
    """Objects there is room for."""
    slabs: int


class Doctor1Message(TypedDict):
    """The message and its explanation as a document."""

    allocator: str
    cache: str | None
    cgroup: Doctor1MessageCgroup | None
    """The memory cgroup whose copy of the cache it was."""
    cpu: int | None
    """The CPU that asked."""
    explained: list[Doctor1MessageExplainedItem]
    gfp: int | None
    gfp_names: str | None
    lines: list[int]
    """Lines of the text where equal messages begin."""
    may_sleep: bool | None
    """Whether its caller could sleep; null if the flags do not tell."""
    message: str
    """The words of its first line."""
    min_order: int | None
    node: int | None
    """The node that was asked for; below 0, any."""
    nodes: list[Doctor1MessageNode]
    object_size_bytes: int | None
    order: int | None
    slab_size_bytes: int | None


class Doctor1MissingItem(TypedDict):
    """A file that would have told more."""

    command: str | None
    """The one command that makes it readable or collects it; `None` if there is none."""
    costs: str
    """What cannot be said without it."""
    file: str
    """Its path on the machine, such as `/proc/slabinfo`."""
    why: str
    """Why it is not there: not in the bundle, no permission, this kernel has none."""


class Doctor1NormalKernel(TypedDict):
    """The kernel of the boots."""

    arch: str
    """`x86_64`; empty if the dump does not tell."""
    page_size_bytes: int
    """Bytes in a page."""
    release: str
    """`6.1`, the first two numbers of the release."""


class Doctor1NormalSlabs(TypedDict):
    """All slabs."""

    high_bytes: int
    """The most that is likely."""
    low_bytes: int
    """The least that is likely."""
    predicted_bytes: int
    """The prediction."""


class Doctor1NormalUnreclaimable(TypedDict):
    """Slabs that no shrinker frees."""

    high_bytes: int
    """The most that is likely."""
    low_bytes: int
    """The least that is likely."""
    predicted_bytes: int
    """The prediction."""


class Doctor1Normal(TypedDict):
    """What a machine takes that has only booted, with these CPUs and pages; null if that is not known."""

    boots_cpus: list[int]
    """The CPUs of the boots that were measured."""
    cpus: int
    kernel: Doctor1NormalKernel
    """The kernel of the boots."""
    slabs: Doctor1NormalSlabs
    """All slabs."""
    unreclaimable: Doctor1NormalUnreclaimable
    """Slabs that no shrinker frees."""


class Doctor1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class Doctor1Total(TypedDict):
    """The split of all caches."""

    accounting_bytes: int | None
    """accounting, in slabs"""
    alignment_bytes: int | None
    """alignment"""
    debugging_bytes: int | None
    """debugging"""
    free_bytes: int
    """free in slabs"""
    in_use_bytes: int
    """in use"""
    loss_bytes: int
    """loss"""
    parked_high_bytes: int
    """parked with CPUs, at most"""
    parked_low_bytes: int
    """parked with CPUs, at least"""
    pointer_bytes: int | None
    """free pointers outside"""
    raced_bytes: int
    """counted twice, in a race"""
    slab_bytes: int
    """all caches"""
    tail_bytes: int
    """tail of slabs"""
    tail_overstated_bytes: int
    """of smaller slabs, no memory"""


class Doctor1Verdict(TypedDict):
    """An answer and its words."""

    kind: Literal["climbing"] | Literal["benign_cache"] | Literal["steady"] | Literal["not_reclaimable"] | Literal["unknown"] | Literal["corruption"]
    """The kind."""
    text: str
    """The sentence."""


class Doctor1(TypedDict):
    """slablab doctor: where a machine's slab memory goes, and what would help"""

    actions: list[Doctor1Action]
    """What this kernel lets its user do, most likely savings first."""
    all_caches: bool
    """Whether the input has all caches of the machine."""
    answer: str
    """The answer in one sentence."""
    boot_id: str | None
    """The kernel's random number of this boot."""
    caches: list[Doctor1Cache]
    """Every cache, in the order of the input."""
    cgroups: list[Doctor1Cgroup]
    """Memory cgroups without children."""
    corruptions: list[Doctor1Corruption]
    """Reports of damaged or lost objects."""
    cpus_online: int | None
    """CPUs that were online."""
    dying_cgroups: int | None
    """Removed cgroups that still hold memory."""
    each_slab: list[Doctor1EachSlabItem]
    """Slabs of each cache that a recorder read one by one; empty for other inputs."""
    evidence: list[str]
    """The limits of the answer, in sentences."""
    findings: list[Doctor1Finding]
    growth: Doctor1Growth | None
    """What grew since the first snapshot."""
    host: str | None
    input: str
    """The path that was examined; / for the running machine."""
    kmalloc: Doctor1Kmalloc | None
    """The cost of kmalloc's classes, by a recording."""
    knobs: list[Doctor1Knob]
    """What this kernel lets its user change."""
    meminfo: Doctor1Meminfo | None
    messages: list[Doctor1Message]
    """Messages of the kernel about slabs."""
    missing: list[Doctor1MissingItem]
    """Files that were not there: why, what that costs, and the command that gets the file."""
    nodes: int
    normal: Doctor1Normal | None
    """What a machine takes that has only booted, with these CPUs and pages; null if that is not known."""
    object_sizes_unknown: int
    """Caches whose object size without padding the input does not have."""
    page_size_bytes: int
    """Bytes of a page."""
    program: Doctor1Program
    """The program that wrote the answer, and its version."""
    release: str | None
    """The release of the kernel, as `uname -r` prints it."""
    schema: Literal["slablab.doctor.1"]
    taken_s: int | None
    """When the dump was taken, in seconds since 1970."""
    total: Doctor1Total
    """The split of all caches."""
    up_s: float | None
    """How long the kernel had run, in seconds."""
    verdict: Doctor1Verdict
    """An answer and its words."""


class Experiment1CellFailedItem(TypedDict):
    """The machine cannot be modelled."""

    kind: Literal["machine"]
    text: str


class Experiment1CellFailedItem2(TypedDict):
    """A bug of the program."""

    kind: Literal["broken"]
    text: str


class Experiment1CellFailedItem3(TypedDict):
    """Tasks wait for ever: each with what it waits for."""

    kind: Literal["stuck"]
    tasks: list[str]


class Experiment1CellFailedItem4(TypedDict):
    """Reclaim freed no page for so many seconds of the model's time."""

    kind: Literal["livelock"]
    seconds: int
    tasks: list[str]


class Experiment1CellFailedItem5Cache(TypedDict):
    """What a cache holds."""

    bytes: int
    """Of its slabs."""
    name: str
    objects: int


class Experiment1CellFailedItem5(TypedDict):
    """No page was found after so many allocations and frees. What each cache held then."""

    caches: list[Experiment1CellFailedItem5Cache]
    events: int
    kind: Literal["out of memory"]


class Experiment1CellMetric(TypedDict):
    mean: float
    n: int


class Experiment1CellMetric2Placements(TypedDict):
    """The variance within and between placements, if there are several."""

    p: float | None
    """The probability of such means if placements make no difference; null if there is no scatter."""
    sd_between: float
    sd_within: float
    share_between: float


class _Experiment1CellMetric2(TypedDict):
    max: float
    mean: float
    mean_high_95: float | None
    mean_low_95: float | None
    median: float
    min: float
    n: int
    sd: float


class Experiment1CellMetric2(_Experiment1CellMetric2, total=False):
    placements: Experiment1CellMetric2Placements | None
    """The variance within and between placements, if there are several."""


class Experiment1Cell(TypedDict):
    cell: int
    """Its place in the experiment."""
    costs: str
    """What is changed of the machine's costs."""
    engine: str
    failed: list[Experiment1CellFailedItem | Experiment1CellFailedItem2 | Experiment1CellFailedItem3 | Experiment1CellFailedItem4 | Experiment1CellFailedItem5]
    machine: str
    metrics: dict[str, Experiment1CellMetric | Experiment1CellMetric2]
    """Statistics of each metric over the repeats, by its name."""
    parameters: dict[str, int | str]
    """The workload's parameters that the experiment sets."""
    runs: int


class Experiment1ComparisonPair(TypedDict):
    base: str
    base_mean: float | None
    base_n: int | None
    base_sd: float | None
    better: str
    cliffs_delta: float | None
    gain_percent: float | None
    """How much better the other value is than the base, in percent; below 0 if it is worse."""
    gain_percent_high_95: float | None
    gain_percent_low_95: float | None
    hedges_g: float | None
    other: str
    other_mean: float | None
    other_n: int | None
    other_sd: float | None
    p: float | None
    p_holm: float | None
    """The p-value after Holm's correction over the table."""
    row: str
    verdict: str


class Experiment1Comparison(TypedDict):
    """A comparison as a document."""

    columns: list[str]
    pairs: list[Experiment1ComparisonPair]
    schema: str
    """slablab.comparison.1"""
    significance: float
    summary: str
    test: str


class Experiment1Function(TypedDict):
    """A function of a cell."""

    busy_percent: float
    """Of the time in which the machine's CPUs were not idle."""
    cache_misses: int
    """Cache lines that came from other CPUs' caches or from memory."""
    cell: str
    """The cell, as tables name it."""
    engine: str
    function: str
    lock_ps: int
    """From where it came to a lock until it had it."""
    locks: int
    machine: str
    time_ps: int
    """Of all CPUs, with waits for locks."""


class Experiment1Metric(TypedDict):
    """How a metric's numbers are shown: in `unit`, of which each has `per_unit` of the numbers' own."""

    better: str | None
    """Which values are better, lower or higher; null if neither is."""
    decimals: int
    name: str
    per_unit: float
    unit: str


class Experiment1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class _Experiment1(TypedDict):
    answer: str
    """The answer in one sentence."""
    cells: list[Experiment1Cell]
    comparison: Experiment1Comparison
    """A comparison as a document."""
    metric: str
    """The metric that is compared first."""
    metrics: list[Experiment1Metric]
    name: str
    program: Experiment1Program
    """The program that wrote the answer, and its version."""
    repeats: int
    """Runs of each cell and placement, at least."""
    schema: Literal["slablab.experiment.1"]
    seed: int
    """The seed of random numbers."""
    size: str
    title: str
    workload: str


class Experiment1(_Experiment1, total=False):
    """slablab run, slablab run --join: the statistics of an experiment"""

    functions: list[Experiment1Function] | None
    """What functions cost, if that was asked for."""
    placements: int | None
    """Starting states in which each cell repeats, if there are several."""
    precision_percent: float | None
    """The interval at which a cell stops, if the experiment asks for one."""
    repeats_most: int | None
    """Runs at which a cell stops in any case, if the experiment asks for an interval."""


_ExplainExperiment1GroupPolicy1 = TypedDict("_ExplainExperiment1GroupPolicy1", {"from": str})


class ExplainExperiment1GroupPolicy(_ExplainExperiment1GroupPolicy1):
    """A policy that differs."""

    policy: str
    """Its name."""
    to: str
    """Its value in the second preset."""


class ExplainExperiment1Group(TypedDict):
    """Policies that are changed together."""

    group: str
    """Its name: that of its only policy, or of its theme."""
    policies: list[ExplainExperiment1GroupPolicy]
    """Its policies with their values in both presets; of the kernel the releases."""


class ExplainExperiment1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class ExplainExperiment1RowMeasureInteraction(TypedDict):
    groups: list[str]
    value: float


class ExplainExperiment1RowMeasurePart(TypedDict):
    alone: float
    """What the group changes alone, in the first preset."""
    give_or_take: float | None
    """Half of Student's 95 % interval over the repeats; null with one."""
    group: str
    has_effect: bool
    """Whether it changes anything in any combination and repeat."""
    last: float
    """What the group changes as the last, towards the second preset."""
    sum_of_repeats: str
    """The sum over the repeats in the metric's own numbers: a whole number, or a fraction."""
    value: float
    """The mean over the repeats."""


_ExplainExperiment1RowMeasure1 = TypedDict("_ExplainExperiment1RowMeasure1", {"from": float})


class ExplainExperiment1RowMeasure(_ExplainExperiment1RowMeasure1):
    """A metric's difference, in its unit."""

    change: float
    interactions: list[ExplainExperiment1RowMeasureInteraction]
    """What pairs of groups do beyond what each does without the other, the strongest first."""
    metric: str
    parts: list[ExplainExperiment1RowMeasurePart]
    """The parts of all groups, whose sum is the change."""
    per_unit: float
    """How many of the metric's own numbers are one of its unit."""
    to: float
    """The mean under the second preset."""
    unit: str


class ExplainExperiment1Row(TypedDict):
    """A row of the experiment, or a count of a phase."""

    measures: list[ExplainExperiment1RowMeasure]
    """What was measured: the main metric first."""
    row: str


_ExplainExperiment11 = TypedDict("_ExplainExperiment11", {"from": str})


class ExplainExperiment1(_ExplainExperiment11):
    """slablab explain EXPERIMENT: the part of each policy in a difference of times"""

    answer: str
    """The answer in one sentence."""
    combinations: int
    """Combinations of groups that ran."""
    experiment: str
    """The experiment's name."""
    groups: list[ExplainExperiment1Group]
    """What differs."""
    left_out: list[str]
    """What was left out, in sentences."""
    program: ExplainExperiment1Program
    """The program that wrote the answer, and its version."""
    repeats: int
    """Runs of each combination in each row."""
    rows: list[ExplainExperiment1Row]
    """What was taken apart."""
    schema: Literal["slablab.explain-experiment.1"]
    seed: int
    """The seed of random numbers."""
    size: str
    """How long runs are."""
    to: str
    """The second preset, or the second values."""


_ExplainScript1GroupPolicy1 = TypedDict("_ExplainScript1GroupPolicy1", {"from": str})


class ExplainScript1GroupPolicy(_ExplainScript1GroupPolicy1):
    """A policy that differs."""

    policy: str
    """Its name."""
    to: str
    """Its value in the second preset."""


class ExplainScript1Group(TypedDict):
    """Policies that are changed together."""

    group: str
    """Its name: that of its only policy, or of its theme."""
    policies: list[ExplainScript1GroupPolicy]
    """Its policies with their values in both presets; of the kernel the releases."""


class ExplainScript1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class ExplainScript1RowMeasureInteraction(TypedDict):
    groups: list[str]
    value: float


class ExplainScript1RowMeasurePart(TypedDict):
    alone: float
    """What the group changes alone, in the first preset."""
    give_or_take: float | None
    """Half of Student's 95 % interval over the repeats; null with one."""
    group: str
    has_effect: bool
    """Whether it changes anything in any combination and repeat."""
    last: float
    """What the group changes as the last, towards the second preset."""
    sum_of_repeats: str
    """The sum over the repeats in the metric's own numbers: a whole number, or a fraction."""
    value: float
    """The mean over the repeats."""


_ExplainScript1RowMeasure1 = TypedDict("_ExplainScript1RowMeasure1", {"from": float})


class ExplainScript1RowMeasure(_ExplainScript1RowMeasure1):
    """A metric's difference, in its unit."""

    change: float
    interactions: list[ExplainScript1RowMeasureInteraction]
    """What pairs of groups do beyond what each does without the other, the strongest first."""
    metric: str
    parts: list[ExplainScript1RowMeasurePart]
    """The parts of all groups, whose sum is the change."""
    per_unit: float
    """How many of the metric's own numbers are one of its unit."""
    to: float
    """The mean under the second preset."""
    unit: str


class ExplainScript1Row(TypedDict):
    """A row of the experiment, or a count of a phase."""

    measures: list[ExplainScript1RowMeasure]
    """What was measured: the main metric first."""
    row: str


_ExplainScript11 = TypedDict("_ExplainScript11", {"from": str})


class ExplainScript1(_ExplainScript11):
    """slablab explain SCRIPT: the part of each policy of page replacement in a difference"""

    answer: str
    """The answer in one sentence."""
    combinations: int
    """Combinations of groups that ran."""
    groups: list[ExplainScript1Group]
    """What differs."""
    left_out: list[str]
    """What was left out, in sentences."""
    program: ExplainScript1Program
    """The program that wrote the answer, and its version."""
    rows: list[ExplainScript1Row]
    """What was taken apart."""
    schema: Literal["slablab.explain-script.1"]
    script: str
    """The script's path."""
    seeds: int
    """Runs of each combination: the seeds from 1 on."""
    to: str
    """The second preset, or the second values."""


class _Explain1CutOff(TypedDict):
    at_bytes: int
    """Bytes that are there, of the decompressed recording."""


class Explain1CutOff(_Explain1CutOff, total=False):
    """Where the recording was cut off; null for a whole one."""

    of_bytes: int | None
    """Bytes that the recording should have, if it says so."""
    why: str | None
    """Why the recorder ended it early, if it did; else the file was cut."""


class _Explain1MeasureInteraction(TypedDict):
    exact: str
    policies: list[str]
    value: float


class Explain1MeasureInteraction(_Explain1MeasureInteraction, total=False):
    """A mean as a number and as the fraction it is."""

    give_or_take: float | None
    """Half of its 95 % interval, where orders were sampled."""
    seen: int | None
    """Times it was seen, where orders were sampled."""


class _Explain1MeasurePart(TypedDict):
    alone: int
    """What it changes alone, in the first engine."""
    exact: str
    last: int
    """What it changes as the last, towards the second engine."""
    value: float


class Explain1MeasurePart(_Explain1MeasurePart, total=False):
    """A mean as a number and as the fraction it is."""

    give_or_take: float | None
    """Half of its 95 % interval, where orders were sampled."""


_Explain1Measure1 = TypedDict("_Explain1Measure1", {"from": int})


class Explain1Measure(_Explain1Measure1):
    change: int
    interactions: list[Explain1MeasureInteraction]
    """What pairs of policies do beyond what each does without the other."""
    measure: str
    parts: dict[str, Explain1MeasurePart]
    """The part of each policy, by its name."""
    to: int
    unit: str


class Explain1Method(TypedDict):
    interval_percent: int | None
    kind: str
    """`exact` or `sampled`."""
    orders_sampled: int | None
    replays: int
    seed: int | None
    """The seed of random numbers."""


_Explain1Policy1 = TypedDict("_Explain1Policy1", {"from": str})


class Explain1Policy(_Explain1Policy1):
    has_effect: bool
    policy: str
    to: str
    what: str


class Explain1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class Explain1Start(TypedDict):
    """How the state at the start was inferred; null if it was not."""

    inferred: str
    """What was inferred, in a sentence."""
    objects_seen_by_address: int
    """Objects whose addresses show them."""
    page_frees_used: bool
    """Whether frees of page frames set the start."""
    slabs_empty_by_page_frees: int
    """Slabs whose objects were free by that."""
    slabs_only_freed: int
    """Slabs of which only frees are seen: how full they were is drawn to fit the dump."""
    slabs_only_freed_partial: int
    """Of those, slabs that were drawn partial."""
    slabs_seen_by_address: int
    """Slabs that the addresses of later events show."""


_Explain11 = TypedDict("_Explain11", {"from": str})


class Explain1(_Explain11):
    """slablab explain RECORDING: the part of each policy in a difference"""

    answer: str
    """The answer in one sentence."""
    cache: str | None
    """The cache that was asked for."""
    cut_off: Explain1CutOff | None
    """Where the recording was cut off; null for a whole one."""
    events_lost: int
    """Events that the recording lost, as far as it says."""
    lost_records: int
    """Places in the recording where events were lost."""
    measures: list[Explain1Measure]
    method: Explain1Method
    notes: list[str]
    """What could not be taken apart, and what does not differ."""
    policies: list[Explain1Policy]
    program: Explain1Program
    """The program that wrote the answer, and its version."""
    recording: str
    """The recording's path."""
    release: str | None
    """The release of the kernel, as `uname -r` prints it."""
    remarks: list[str]
    """What the answer lacks, then what it rests on: sentences."""
    schema: Literal["slablab.explain.1"]
    start: Explain1Start | None
    """How the state at the start was inferred; null if it was not."""
    to: str
    """The second engine."""


class Fleet1AllSave(TypedDict):
    """What a change saves; below 0 it takes memory."""

    change: str
    """As `max_order=0`."""
    high_bytes: int
    likely_bytes: int
    low_bytes: int
    machines: int
    """Machines on which it is predicted."""


class Fleet1All(TypedDict):
    """All machines."""

    loss_bytes: int
    machines: int
    memory_bytes: int
    name: str
    saves: list[Fleet1AllSave]
    slab_bytes: int
    unreclaimable_bytes: int


class Fleet1Cache(TypedDict):
    bytes: int
    machines: int
    median_bytes: int
    most_bytes: int
    name: str
    reclaimable: bool
    """Whether the kernel frees its objects when it needs memory."""


class Fleet1ClimbingItem(TypedDict):
    bytes: int
    bytes_per_day: float | None
    """On the machine in the middle; null where times are not known."""
    cache: str
    machines: int
    of: int
    """Machines with two dumps or more."""
    reclaimable: bool


class Fleet1GroupSave(TypedDict):
    """What a change saves; below 0 it takes memory."""

    change: str
    """As `max_order=0`."""
    high_bytes: int
    likely_bytes: int
    low_bytes: int
    machines: int
    """Machines on which it is predicted."""


class Fleet1Group(TypedDict):
    loss_bytes: int
    machines: int
    memory_bytes: int
    name: str
    saves: list[Fleet1GroupSave]
    slab_bytes: int
    unreclaimable_bytes: int


class Fleet1Machine(TypedDict):
    dump: str
    group: str
    loss_bytes: int
    memory_bytes: int
    """0 if the dump does not tell."""
    name: str
    slab_bytes: int
    taken_s: int | None
    """Seconds since 1970."""
    unreclaimable_bytes: int
    verdict: Literal["climbing"] | Literal["benign_cache"] | Literal["steady"] | Literal["not_reclaimable"] | Literal["unknown"] | Literal["corruption"]
    """The kinds of answers."""


class Fleet1Outlier(TypedDict):
    bytes: int
    cache: str
    machine: str
    median_percent: float
    """The part of memory on the machine in the middle of the group."""
    memory_percent: float
    """The part of the machine's memory."""
    reclaimable: bool


class Fleet1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class Fleet1UnreadItem(TypedDict):
    dump: str
    why: str


class Fleet1(TypedDict):
    """slablab fleet: slab memory of many machines"""

    all: Fleet1All
    """All machines."""
    answer: str
    """The answer in one sentence."""
    caches: list[Fleet1Cache]
    """Caches over all machines, most bytes first."""
    climbing: list[Fleet1ClimbingItem]
    """Caches that grew on nearly all machines with two dumps or more."""
    groups: list[Fleet1Group]
    machines: list[Fleet1Machine]
    outliers: list[Fleet1Outlier]
    """Caches of machines that have far more of the memory than on the others of their group."""
    program: Fleet1Program
    """The program that wrote the answer, and its version."""
    schema: Literal["slablab.fleet.1"]
    unread: list[Fleet1UnreadItem]
    """Dumps that could not be read, and why."""


class Hackbench1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class Hackbench1(TypedDict):
    """slablab calibrate hackbench: times of senders and receivers"""

    answer: str
    """The answer in one sentence."""
    channel: str
    """pipe or socketpair."""
    groups: int
    """Groups of 20 senders and 20 receivers."""
    kind: str
    """processes or threads."""
    loops: int
    """Messages of each sender to each receiver of its group."""
    messages: int
    """Messages of a run."""
    program: Hackbench1Program
    """The program that wrote the answer, and its version."""
    runs: list[float]
    """Seconds of every run."""
    schema: Literal["slablab.hackbench.1"]
    seconds: float
    """The median of the runs."""
    seconds_interval_95: list[float] | None
    """The ends of the 95 % interval of the median; null for fewer than 5 runs."""


class _Import1Cache(TypedDict):
    allocs: int
    """Objects allocated."""
    bytes_alloc: int
    """Bytes it gives for an object; that of the last allocation seen."""
    freed_before: int
    """Of these: the address had been freed before."""
    frees: int
    """Objects freed by an event."""
    frees_other_cpu: int
    """Of these: by another CPU than allocated."""
    implied_frees: int
    """Untraced frees that follow from later events; not in `frees`."""
    live_end: int
    """Objects live at the end, of those allocated in the recording."""
    live_max: int
    """Most objects live at once, of those allocated in the recording."""
    reordered: int
    """Rows moved by the order rule."""
    unseen_frees: int
    """Of the frees: the allocation is not in the recording."""


class Import1Cache(_Import1Cache, total=False):
    """One cache and its counts."""

    directory: str | None
    """Its directory in /sys/kernel/slab, where the recording says it is another name."""
    name: str
    """Its name in the events; empty for a kmalloc size."""


class _Import1CutOff(TypedDict):
    at_bytes: int
    """Bytes that are there, of the decompressed recording."""


class Import1CutOff(_Import1CutOff, total=False):
    """Where the recording was cut off; null for a whole one."""

    of_bytes: int | None
    """Bytes that the recording should have, if it says so."""
    why: str | None
    """Why the recorder ended it early, if it did; else the file was cut."""


class _Import1ImportKmallocItem(TypedDict):
    allocs: int
    """Objects allocated."""
    bytes_alloc: int
    """Bytes it gives for an object; that of the last allocation seen."""
    freed_before: int
    """Of these: the address had been freed before."""
    frees: int
    """Objects freed by an event."""
    frees_other_cpu: int
    """Of these: by another CPU than allocated."""
    implied_frees: int
    """Untraced frees that follow from later events; not in `frees`."""
    live_end: int
    """Objects live at the end, of those allocated in the recording."""
    live_max: int
    """Most objects live at once, of those allocated in the recording."""
    reordered: int
    """Rows moved by the order rule."""
    unseen_frees: int
    """Of the frees: the allocation is not in the recording."""


class Import1ImportKmallocItem(_Import1ImportKmallocItem, total=False):
    """One cache and its counts."""

    directory: str | None
    """Its directory in /sys/kernel/slab, where the recording says it is another name."""
    name: str
    """Its name in the events; empty for a kmalloc size."""


class Import1ImportRepairs(TypedDict):
    """Counts over all caches."""

    behind: int
    """Rows whose time is before that of an earlier row, since rows are in the order in which events took effect."""
    cache_changed: int
    """Frees whose event names another cache than the allocation's did."""
    damaged_sizes: int
    """Allocation events of more than 512 MiB, the largest block of any kernel: damaged, and not in the trace."""
    failed_allocs: int
    """Allocations that returned NULL."""
    forgotten: int
    """Times the memory of freed addresses was full and forgotten."""
    freed_before: int
    """Of these: the address had been freed before, so that the allocation was during the recording."""
    gfp_bits_unknown: int
    """Allocation flags, in the recording's bits, that have no name here."""
    implied_by_alloc: int
    """Frees implied by an allocation of an address still live."""
    implied_by_page: int
    """Frees implied by a page freed, or allocated, under live objects."""
    late: int
    """Of these: farther behind than that order explains, because the recording itself is not in order."""
    null_frees: int
    """`kfree(NULL)`."""
    pages_unchecked: int
    """Page events before the place of memory was known (see docs/trace-format.md), and so not checked against objects."""
    reordered: int
    """Rows moved by the order rule."""
    unseen_frees: int
    """Frees of objects whose allocation is not in the recording."""
    zero_size_frees: int
    """`kfree(ZERO_SIZE_PTR)`."""


class Import1ImportUnknown(TypedDict):
    """Frees of unknown objects."""

    allocs: int
    """Objects allocated."""
    freed_before: int
    """Of these: the address had been freed before."""
    frees: int
    """Objects freed by an event."""
    frees_other_cpu: int
    """Of these: by another CPU than allocated."""
    implied_frees: int
    """Untraced frees that follow from later events; not in `frees`."""
    live_end: int
    """Objects live at the end, of those allocated in the recording."""
    live_max: int
    """Most objects live at once, of those allocated in the recording."""
    reordered: int
    """Rows moved by the order rule."""
    unseen_frees: int
    """Of the frees: the allocation is not in the recording."""


class _Import1Import(TypedDict):
    kmalloc: list[Import1ImportKmallocItem]
    """Per `bytes_alloc`: kmalloc and kfree of objects whose cache was not recorded."""
    order_window_ns: int
    """How far apart in time two rows may be for the order rule."""
    program: str
    """The program that imported."""
    repairs: Import1ImportRepairs
    """Counts over all caches."""
    skipped_events: int
    """Events of kinds that a trace has no number for."""
    unknown: Import1ImportUnknown
    """Frees of unknown objects."""


class Import1Import(_Import1Import, total=False):
    """What was found and repaired; null for a trace."""

    linear_map: int | None
    """Where the kernel's linear map begins, if it could be found: frame `n` is at this plus `n` pages."""


class Import1LossesListItem(TypedDict):
    """One record of loss."""

    cpu: int | None
    """The CPU whose buffer overran, if the record says so."""
    events: int
    """How many events, 0 when it does not say."""
    kind: str
    """`ring`, `samples` or `throttled`."""
    offset_bytes: int
    """Byte offset of the record in the (decompressed) source."""
    row: int
    """The row of event `lost`, from 0: the lost events were before it."""
    time_ns: int
    """When it was noticed."""


class Import1Losses(TypedDict):
    """What the recorder lost. The sums are exact; the list is cut off at [`Losses::LIMIT`]."""

    by_cpu: dict[str, Any]
    """Events lost by CPU, as far as known."""
    events: int
    """Events lost, as far as the recording says."""
    list: list[Import1LossesListItem]
    """The records."""
    records: int
    """Records that say so; some do not say how many events."""


class Import1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class _Import1Source(TypedDict):
    kind: str
    """What it was: `perf.data`, `trace.dat`, `ftrace text`, `csv`, `counters csv`, `malloc`."""
    size_bytes: int
    """Its size as it was."""


class Import1Source(_Import1Source, total=False):
    """The file a trace was made from."""

    command: list[str]
    """The command that recorded."""
    sha256: str
    """SHA-256 of the file as it was, compressed or not. Empty: the file was not kept."""


class Import1Statistics(TypedDict):
    """Counts over all rows."""

    cpu_ids: int
    """CPU numbers are below this."""
    events: dict[str, int]
    """Rows by event name. Without the synthetic events, these are the recorded events."""
    first_time_ns: int
    """Time of the first row."""
    last_time_ns: int
    """The latest time of a row."""
    object_ids: int
    """Object ids are below this: the length of an array indexed by object."""
    rows: int
    """Rows in the file."""


class _Import1TopologyNode(TypedDict):
    cpus: list[int]
    """Its CPUs."""
    distances: list[int]
    """Distances to the nodes in the order of the list."""
    node: int
    """Its number."""


class Import1TopologyNode(_Import1TopologyNode, total=False):
    """One memory node."""

    memory_bytes: int | None
    """Its memory, 0 for a node without."""


class _Import1Topology(TypedDict):
    pass


class Import1Topology(_Import1Topology, total=False):
    """CPUs and memory nodes."""

    cpus_online: int | None
    """CPUs online when recording."""
    cpus_possible: int | None
    """CPUs the kernel was prepared for."""
    nodes: list[Import1TopologyNode]
    """The nodes; empty when not known."""


_Import11 = TypedDict("_Import11", {"import": Import1Import | None})


class Import1(_Import11):
    """slablab import: what was converted, lost and repaired"""

    answer: str
    """The answer in one sentence."""
    architecture: str | None
    caches: list[Import1Cache]
    """The caches of the events."""
    cut_off: Import1CutOff | None
    """Where the recording was cut off; null for a whole one."""
    incomplete: bool
    """Whether the recording is known to miss events."""
    input: str
    losses: Import1Losses
    """What the recorder lost. The sums are exact; the list is cut off at [`Losses::LIMIT`]."""
    output: str
    page_size_bytes: int | None
    """Bytes of a page."""
    pairing_only: bool
    """Whether addresses are hashes: they pair an object's events, and say nothing of pages and nodes."""
    program: Import1Program
    """The program that wrote the answer, and its version."""
    release: str | None
    """The release of the kernel, as `uname -r` prints it."""
    schema: Literal["slablab.import.1"]
    source: Import1Source | None
    """The file a trace was made from."""
    statistics: Import1Statistics
    """Counts over all rows."""
    topology: Import1Topology
    """CPUs and memory nodes."""
    warnings: list[str]
    """What a user of the trace should be told, in sentences."""


class Leak1Counter(TypedDict):
    after_bytes: int
    before_bytes: int
    name: str
    """The line of /proc/meminfo."""


class Leak1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class Leak1SuspectEnds(TypedDict):
    command: str | None
    """The command to type; null if there is none."""
    cost: str | None
    how: str


class Leak1SuspectSite(TypedDict):
    cache: str
    course: Literal["each_part"] | Literal["some_parts"] | Literal["unknown"]
    """How growth went over the time."""
    frames: list[str]
    """The call chain with most of them, from the site outwards."""
    live_bytes: int
    live_objects: int
    name: str
    task: str | None
    """The task that allocated most of them."""


class Leak1SuspectWho(TypedDict):
    and_others: bool
    """Whether others hold some too."""
    cgroup: str
    """The memory cgroup of the process with most."""
    comm: str
    """The name of the processes."""
    count: int
    more: int | None
    """How many more than in the first snapshot."""
    pid: int
    """The process with most; 0 for what is no process."""
    processes: int
    what: str
    """What they hold, in words."""


class Leak1Suspect(TypedDict):
    bytes: int
    """Growth; of one snapshot, all of it."""
    bytes_per_hour: float | None
    caches: list[str]
    """The caches, the one that says what grew first."""
    course: Literal["each_part"] | Literal["some_parts"] | Literal["unknown"]
    """How growth went over the time."""
    ends: Leak1SuspectEnds | None
    objects: int
    reclaimable: bool
    """Whether the kernel frees such objects by itself when it needs memory."""
    sites: list[Leak1SuspectSite]
    """Call sites of what the recording saw allocated and not freed."""
    who: Leak1SuspectWho | None


class Leak1(TypedDict):
    """slablab leak: what grew, who holds it, which code allocates it"""

    answer: str
    """The answer in one sentence."""
    counters: list[Leak1Counter]
    """Memory of the kernel that is no slabs, and grew."""
    input: str
    """The path of the input; / for the running machine."""
    lacks: list[str]
    """What is not there, and why: sentences."""
    program: Leak1Program
    """The program that wrote the answer, and its version."""
    recorded_events: int | None
    """Events of the recording; null without one."""
    schema: Literal["slablab.leak.1"]
    seconds: float | None
    """Seconds from the first snapshot to the last; null if that is not known."""
    snapshots: int
    suspects: list[Leak1Suspect]
    """What grew, the likeliest leak first; of one snapshot, what is held."""
    verdict: Literal["climbing"] | Literal["grew"] | Literal["reclaimable"] | Literal["steady"] | Literal["one_snapshot"] | Literal["corruption"]
    """The kinds of answers."""


class LinuxBuild1Change(TypedDict):
    """An option of a user's configuration that the image's configuration has with another value."""

    image_value: str
    """The image's value."""
    needed: bool
    """Whether an image needs this value. If not, the change follows from others."""
    option: str
    """Its name, without `CONFIG_`."""
    user_value: str
    """The user's value; `n` if it was not set."""


class LinuxBuild1Part(TypedDict):
    """A part of the build."""

    part: str
    seconds: float


class LinuxBuild1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class LinuxBuild1(TypedDict):
    """slablab linux build: the allocator of a kernel tree as an engine"""

    allocator: Literal["slub"] | Literal["slab"] | Literal["slob"]
    """An allocator of Linux."""
    answer: str
    """The answer in one sentence."""
    build_seconds: float
    """Seconds of the build."""
    changes: list[LinuxBuild1Change]
    """Options that the image has with another value than the user's configuration."""
    compiler: str
    """The first line of the compiler's --version."""
    config: str | None
    """The user's configuration; null for the program's own."""
    digest: str
    """The SHA-256 of everything that the build was made of: builds with the same are the same."""
    folder: str
    """The folder of the images."""
    images_bytes: int
    """Bytes of both images."""
    is_new: bool
    """Whether this command built it; false if it was there."""
    linker: str
    """The first line of the linker's --version."""
    missing_functions: list[str]
    """Functions that have no meaning outside of a kernel: a call ends the run and names the function."""
    name: str
    """What follows `linux:` in the name of the engine."""
    parts: list[LinuxBuild1Part]
    program: LinuxBuild1Program
    """The program that wrote the answer, and its version."""
    release: str
    """The release of the tree."""
    schema: Literal["slablab.linux-build.1"]
    source_files: int
    """Files of the tree that were read."""
    tree: str
    """The folder of the kernel tree."""
    zeroed_data: list[str]
    """Data that has no meaning outside of a kernel, and is zeros."""


class LinuxCommits1Commit(TypedDict):
    build_s: float | None
    """Seconds of its build."""
    commit: str
    """All digits."""
    digest: str | None
    """Names all that its build was made of."""
    moved: int
    """Numbers that it moves."""
    problem: str | None
    """The first error of the compiler, or what the kernel's code said when it ended a run."""
    run_s: float | None
    """Seconds of its runs."""
    state: str
    """measured, untouched, does not build, ended or not run."""
    title: str
    """The first line of its message."""
    values: list[float | None]
    """The means, in the order of `numbers`; empty where there are none."""


_LinuxCommits1Move1 = TypedDict("_LinuxCommits1Move1", {"from": float})


class LinuxCommits1Move(_LinuxCommits1Move1):
    change_percent: float | None
    """Null if the value before was 0."""
    commit: str
    name: str
    p: float | None
    """Null where numbers are exact."""
    p_holm: float | None
    """The p-value after Holm's correction over the series; null where numbers are exact."""
    place: str
    since: str
    """The last commit before it that has numbers: where it is not the commit before, one between may be the one that moves it."""
    to: float


class LinuxCommits1Number(TypedDict):
    """Something that is measured."""

    lower_is_better: bool | None
    """Null where neither lower nor higher values are better."""
    name: str
    place: str
    """Machine and parameters, where there are several; else empty."""
    unit: str
    """Empty for a count."""


class LinuxCommits1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class LinuxCommits1(TypedDict):
    """slablab linux commits: which commit of a series moves which number"""

    answer: str
    """The answer in one sentence."""
    commits: list[LinuxCommits1Commit]
    """The commits in their order; the first is the base."""
    compared: int
    """Numbers of commits that were compared with the commit before."""
    experiment: str | None
    """The experiment that was run; null if a recording was replayed."""
    is_exact: bool
    """Whether each run of a commit gives the same numbers, so that any difference is one."""
    moves: list[LinuxCommits1Move]
    """What moves, by commit."""
    numbers: list[LinuxCommits1Number]
    part: str | None
    """The part that was run, in words; null for all commits."""
    program: LinuxCommits1Program
    """The program that wrote the answer, and its version."""
    range: str
    """The commits, as they were asked for."""
    recording: str | None
    """The recording that was replayed, by its path; null if an experiment was run."""
    schema: Literal["slablab.linux-commits.1"]
    significance: float | None
    """The probability of even one false move, at most; null where numbers are exact."""
    test: str | None
    """The test of differences; null where numbers are exact."""
    tree: str
    """The folder of the kernel tree."""


class LinuxList1Build(TypedDict):
    allocator: str
    built_at_s: int
    """When it was built, in seconds since 1970."""
    digest: str
    name: str
    outdated: None | str
    """Why it is no longer what the tree has; null if it is up to date."""
    release: str
    size_bytes: int
    tree: str


class LinuxList1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class LinuxList1(TypedDict):
    """slablab linux list: the allocators of kernel trees that are built"""

    answer: str
    """The answer in one sentence."""
    builds: list[LinuxList1Build]
    program: LinuxList1Program
    """The program that wrote the answer, and its version."""
    schema: Literal["slablab.linux-list.1"]


class LinuxPatch1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class LinuxPatch1(TypedDict):
    """slablab linux patch: a patch that touches nothing of the allocator"""

    answer: str
    """The answer in one sentence."""
    base: str
    """The commit that they are for, or the tree of a folder without commits."""
    files: list[str]
    """Files that they change."""
    patch: str
    """The patches."""
    program: LinuxPatch1Program
    """The program that wrote the answer, and its version."""
    schema: Literal["slablab.linux-patch.1"]
    source_files: int
    """Files of the tree that the build reads."""


class LinuxRemove1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class LinuxRemove1(TypedDict):
    """slablab linux remove: builds that were removed"""

    answer: str
    """The answer in one sentence."""
    program: LinuxRemove1Program
    """The program that wrote the answer, and its version."""
    removed: list[str]
    """The names of the builds."""
    removed_bytes: int
    """Bytes of their folders, and of what kbuild made for them."""
    schema: Literal["slablab.linux-remove.1"]


class List1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class List1Row(TypedDict):
    allowed: str
    engine: str
    knob: str
    release: str
    value: str
    what: str


class List1Row2(TypedDict):
    about: str
    allowed: str
    knob: str
    value: str
    vm: str
    what: str


class List1Row3(TypedDict):
    experiment: str
    published: str
    """yes if the experiment has published figures"""
    title: str


class List1Row4(TypedDict):
    about: str
    allowed: str
    full: str
    kind: str
    name: str
    quick: str
    standard: str
    what: str
    workload: str


class List1Row5(TypedDict):
    schema: str
    title: str


class List1Row6(TypedDict):
    about: str
    """What a workload does; how an allocator is proved to serve it"""
    group: str
    """The group of a workload; the role of an allocator: ours, peer, twin or floor"""
    kind: str
    """workload or allocator"""
    name: str


class List1(TypedDict):
    """slablab list, slablab bench --list: engines, policies of page replacement, experiments, workloads, .."""

    answer: str
    """The answer in one sentence."""
    list: str
    """engines, vm, experiments, workloads, schemas, or bench: its workloads and allocators."""
    program: List1Program
    """The program that wrote the answer, and its version."""
    rows: list[List1Row | List1Row2 | List1Row3 | List1Row4 | List1Row5 | List1Row6]
    """What the list has, by the keys of its CSV."""
    schema: Literal["slablab.list.1"]


class Machines1Machine(TypedDict):
    about: str
    costs_with_source: str
    cpus: int
    machine: str
    memory_bytes: int
    nodes: int
    nodes_with_memory: int
    page_bytes: int


class Machines1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class Machines1(TypedDict):
    """slablab list machines: the machines that come with the program"""

    answer: str
    """The answer in one sentence."""
    machines: list[Machines1Machine]
    program: Machines1Program
    """The program that wrote the answer, and its version."""
    schema: Literal["slablab.machines.1"]


class Native1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class Native1Row(TypedDict):
    """A pattern on an engine: ns for an allocation and a free together."""

    engine: str
    fitted: bool
    """Whether the model was fitted to this row."""
    modelled_ns: float
    native_ns: float
    """The median of the blocks."""
    native_ns_high: float
    """The upper quartile of the blocks."""
    native_ns_low: float
    """The lower quartile of the blocks."""
    pattern: str
    ratio: float
    """Modelled over native."""


class Native1(TypedDict):
    """slablab calibrate native: measured costs beside those of the model"""

    answer: str
    """The answer in one sentence."""
    program: Native1Program
    """The program that wrote the answer, and its version."""
    rows: list[Native1Row]
    schema: Literal["slablab.native.1"]


class Orders1MachineRunSlab(TypedDict):
    """Their slabs by the rule."""

    objects_first: int
    """Objects in a slab of the smallest size."""
    objects_last: int
    """Objects in a slab of the largest size."""
    order: int
    """log2 of the pages."""
    tail_bytes: int
    """Bytes that no object uses, of all slabs if every size has one."""


class Orders1MachineRunSlabAgainst(TypedDict):
    """Their slabs by the rule it is compared with."""

    objects_first: int
    """Objects in a slab of the smallest size."""
    objects_last: int
    """Objects in a slab of the largest size."""
    order: int
    """log2 of the pages."""
    tail_bytes: int
    """Bytes that no object uses, of all slabs if every size has one."""


class Orders1MachineRun(TypedDict):
    """Neighbouring sizes whose slabs have the same orders."""

    first_bytes: int
    """The smallest size."""
    last_bytes: int
    """The largest size."""
    sizes: int
    """How many sizes there are."""
    slab: Orders1MachineRunSlab
    """Their slabs by the rule."""
    slab_against: Orders1MachineRunSlabAgainst | None
    """Their slabs by the rule it is compared with."""


class Orders1Machine(TypedDict):
    """What rules say on a machine of one page size and one number of CPUs."""

    cpus: int
    """CPUs as asked."""
    objects_wanted: int
    """Objects that SLUB's rules want in a slab."""
    page_size_bytes: int
    """Bytes of a page."""
    runs: list[Orders1MachineRun]
    """Runs of neighbouring sizes with the same orders. With a second rule, only the sizes that differ."""
    size_first_bytes: int
    """The smallest size, at least 1."""
    size_last_bytes: int
    """No size is larger."""
    size_step_bytes: int
    """From one size to the next, at least 1."""
    sizes: int
    """How many sizes were asked about."""
    sizes_down: int
    """Sizes that get a smaller order."""
    sizes_up: int
    """Sizes that get a larger order from the rule than from the one it is compared with."""


class Orders1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class Orders1(TypedDict):
    """slablab orders: slab orders by size"""

    against: str | None
    """The rule that it is compared with."""
    answer: str
    """The answer in one sentence."""
    machines: list[Orders1Machine]
    max_order: int
    min_objects: int
    """0: computed from the CPUs."""
    min_order: int
    policy: str
    """The rule."""
    program: Orders1Program
    """The program that wrote the answer, and its version."""
    schema: Literal["slablab.orders.1"]


class PerCpu1Cache(TypedDict):
    """A cache's objects for each CPU."""

    cache: str
    every_cpu: bool | None
    """Whether every CPU held a slab of it in all dumps of at least 64 CPUs. `None` if there was no such dump."""
    objects_per_cpu: float
    """Objects for each CPU: the median over pairs of dumps."""
    objects_per_cpu_high: float
    """The most that is possible."""
    objects_per_cpu_low: float
    """The least that is possible, whatever CPU slabs hold: the median over pairs."""


class PerCpu1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class PerCpu1(TypedDict):
    """slablab whatif --input: what a kernel allocates for each CPU"""

    answer: str
    """The answer in one sentence."""
    arch: str
    """`x86_64`; empty if the dump does not tell."""
    caches: list[PerCpu1Cache]
    """The caches that the dumps show to grow with the CPUs."""
    cpus: list[int]
    """The numbers of CPUs of the dumps."""
    page_size_bytes: int
    """Bytes in a page."""
    power_of_lists: float | None
    """The power of the CPUs that hold slabs with which slabs on those CPUs' partial lists grow."""
    program: PerCpu1Program
    """The program that wrote the answer, and its version."""
    release: str
    """`6.1`, the first two numbers of the release."""
    schema: Literal["slablab.per-cpu.1"]
    some_cpus: list[str]
    """Caches of which a dump shows that some CPUs hold no slab, though other kernels' CPUs do."""
    threads_of_no_cpu: float | None
    """Threads that no CPU brings."""
    threads_per_cpu: float | None


class PressureJudgement1Cell(TypedDict):
    judged: int
    machine: str
    measure: str
    modelled_max: float
    modelled_mean: float
    modelled_min: float
    noise_percent: None | float
    null_mean: float | str
    null_verdict: str
    p: float | str
    """The p-value; empty where there is none."""
    phase: str
    process: str
    real_max: float
    real_mean: float
    real_min: float
    scenario: str
    verdict: str


class PressureJudgement1EndModelled(TypedDict):
    """Modelled runs."""

    had: int
    """Those that had it."""
    runs: int
    """All."""


class PressureJudgement1EndReal(TypedDict):
    """Real runs."""

    had: int
    """Those that had it."""
    runs: int
    """All."""


class PressureJudgement1End(TypedDict):
    """How many runs of a scenario had an outcome."""

    machine: str
    """The machine."""
    modelled: PressureJudgement1EndModelled
    """Modelled runs."""
    outcome: str
    """The outcome."""
    p: float
    """Fisher's exact test: the probability of shares that differ so much, if both have one."""
    real: PressureJudgement1EndReal
    """Real runs."""
    scenario: str
    """The scenario."""


class PressureJudgement1Map(TypedDict):
    agreement_percent: None | float
    judged: int
    machine: str
    null_machine_percent: None | float
    object: str
    phase: str
    process: str
    random_percent: None | float
    repeats_percent: None | float
    scenario: str


class PressureJudgement1OutcomeModelled(TypedDict):
    """Modelled runs."""

    had: int
    """Those that had it."""
    runs: int
    """All."""


class PressureJudgement1OutcomeReal(TypedDict):
    """Real runs."""

    had: int
    """Those that had it."""
    runs: int
    """All."""


class PressureJudgement1Outcome(TypedDict):
    """How many runs of a scenario had an outcome."""

    machine: str
    """The machine."""
    modelled: PressureJudgement1OutcomeModelled
    """Modelled runs."""
    outcome: str
    """The outcome."""
    p: float
    """Fisher's exact test: the probability of shares that differ so much, if both have one."""
    real: PressureJudgement1OutcomeReal
    """Real runs."""
    scenario: str
    """The scenario."""


class PressureJudgement1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class PressureJudgement1Sign(TypedDict):
    """A measure in which a kernel's two LRUs differ: mean with MGLRU minus mean of the classic LRU."""

    machine: str
    """The machine: kernel and LRU."""
    measure: str
    modelled: float
    phase: str
    """The phase."""
    process: str
    """The spawned process; empty for the script's own."""
    real: float
    same_sign: bool
    scenario: str
    """The scenario."""


class PressureJudgement1(TypedDict):
    """slablab pressure judge: modelled runs beside real ones"""

    answer: str
    """The answer in one sentence."""
    cells: list[PressureJudgement1Cell]
    ends: list[PressureJudgement1End]
    maps: list[PressureJudgement1Map]
    outcomes: list[PressureJudgement1Outcome]
    program: PressureJudgement1Program
    """The program that wrote the answer, and its version."""
    schema: Literal["slablab.pressure-judgement.1"]
    signs: list[PressureJudgement1Sign]


class PressureRecords1PhaseResidencyItem(TypedDict):
    """Pages of an object."""

    absent: int
    pages: int
    present: int
    swapped: int


class PressureRecords1PhaseVmstatItem(TypedDict):
    """A counter of /proc/vmstat."""

    delta: int
    """Its change in the phase."""
    value: int
    """Its value at the end of the phase."""


class PressureRecords1Phase(TypedDict):
    allocstall_movable: int
    compact_stall: int
    elapsed_ms: int
    free_pages_end: int
    majflt: int
    minflt: int
    oom_kill: int
    pgactivate: int
    pgdeactivate: int
    pgscan_direct: int
    pgscan_kswapd: int
    pgsteal_direct: int
    pgsteal_kswapd: int
    phase: str
    pswpin: int
    pswpout: int
    read_by_process_pages: int
    read_pages: int
    record: str
    residency: dict[str, PressureRecords1PhaseResidencyItem]
    """Pages of each object at the end of the phase."""
    slab_reclaimable_pages_end: int
    slabs_scanned: int
    vmstat: dict[str, PressureRecords1PhaseVmstatItem]
    """Counters of /proc/vmstat: change in the phase, and value at its end."""
    workingset_activate_anon: int
    workingset_activate_file: int
    workingset_refault_anon: int
    workingset_refault_file: int


class PressureRecords1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class PressureRecords1(TypedDict):
    """slablab pressure show: the phases of records"""

    answer: str
    """The answer in one sentence."""
    incomplete: list[str]
    """The records without an end: the process was killed, or the file is cut."""
    phases: list[PressureRecords1Phase]
    program: PressureRecords1Program
    """The program that wrote the answer, and its version."""
    schema: Literal["slablab.pressure-records.1"]


class PressureRun1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class PressureRun1Row(TypedDict):
    """A number of a phase: of one run for each seed, and of the real kernel."""

    counter: str
    """The counter's name; `resident OBJECT`, `agreement OBJECT` for maps."""
    modelled: list[int]
    """The modelled numbers, one for each seed."""
    phase: str
    """The phase."""
    process: str
    """The process; empty for the main one."""
    real: int | None
    """The real kernel's number; null without its record."""


class PressureRun1(TypedDict):
    """slablab pressure run: counters by phase"""

    answer: str
    """The answer in one sentence."""
    program: PressureRun1Program
    """The program that wrote the answer, and its version."""
    rows: list[PressureRun1Row]
    schema: Literal["slablab.pressure-run.1"]


class Replay1Before(TypedDict):
    """The state before the recording that was given; absent if there was none."""

    active_objects: int
    caches: int
    path: str


class _Replay1CutOff(TypedDict):
    at_bytes: int
    """Bytes that are there, of the decompressed recording."""


class Replay1CutOff(_Replay1CutOff, total=False):
    """Where the recording was cut off; null for a whole one."""

    of_bytes: int | None
    """Bytes that the recording should have, if it says so."""
    why: str | None
    """Why the recorder ended it early, if it did; else the file was cut."""


class Replay1EngineCache(TypedDict):
    aliases: list[str]
    """Other names of it."""
    allocs: int
    allocs_assumed: int
    allocs_failed: int
    assumed_percent: None | float
    cache: str
    counters: dict[str, int]
    """Counts of events, by their names; those that are 0 are left out."""
    cpu_slabs: int
    free_bytes: int
    frees: int
    frees_implied: int
    frees_old: int
    frees_other_cpu: int
    frees_other_node: int
    live_objects: int
    object_size_bytes: int
    objects: int
    objects_start: int
    objs_per_slab: int
    order: int
    parked_bytes: int
    """Bytes of free objects that CPUs hold."""
    parked_objects: int
    partial: int
    quarantined_objects: int
    slab_bytes: int
    """Bytes of the pages of slabs."""
    slab_size_bytes: int
    slabs: int
    slabs_start: int
    tail_bytes: int
    """Bytes at the ends of slabs that no object fits in."""


class Replay1EngineTimeline(TypedDict):
    """Slab memory over time: columns of one length."""

    every_s: float
    live_bytes: list[int]
    """Bytes of allocated objects."""
    slab_bytes: list[int]
    """Bytes of the pages of slabs."""
    time_s: list[float]


class _Replay1EngineTotal(TypedDict):
    allocs: int
    allocs_assumed: int
    allocs_failed: int
    allocs_fast_percent: None | float
    free_bytes: int
    frees: int
    frees_fast_percent: None | float
    frees_implied: int
    frees_old: int
    frees_other_cpu: int
    frees_other_node: int
    frees_unknown: int
    large_allocs: int
    live_bytes: int
    """Bytes of allocated objects."""
    lock_zone: int
    parked_bytes: int
    """Bytes of free objects that CPUs hold."""
    slab_end_bytes: int
    slab_pages_taken: int
    slab_peak_bytes: int
    slab_start_bytes: int
    slabs_returned: int
    slabs_taken: int
    tail_bytes: int
    """Bytes at the ends of slabs that no object fits in."""


class Replay1EngineTotal(_Replay1EngineTotal, total=False):
    """Sums over all caches."""

    lock_alien: int
    lock_barn: int
    lock_heap: int
    lock_node_list: int
    lock_page_list: int
    lock_remote_free: int
    lock_slab: int
    rows_elsewhere: int
    shared_free_bytes: int
    slabs_returned_order_0: int
    slabs_returned_order_1: int
    slabs_returned_order_10: int
    slabs_returned_order_2: int
    slabs_returned_order_3: int
    slabs_returned_order_4: int
    slabs_returned_order_5: int
    slabs_returned_order_6: int
    slabs_returned_order_7: int
    slabs_returned_order_8: int
    slabs_returned_order_9: int
    slabs_taken_order_0: int
    slabs_taken_order_1: int
    slabs_taken_order_10: int
    slabs_taken_order_2: int
    slabs_taken_order_3: int
    slabs_taken_order_4: int
    slabs_taken_order_5: int
    slabs_taken_order_6: int
    slabs_taken_order_7: int
    slabs_taken_order_8: int
    slabs_taken_order_9: int
    slob_blocks_walked: int
    slob_pages_walked: int


class Replay1EngineViolationsCacheFirstItemAllocated(TypedDict):
    cpu: int
    site: int
    time_ns: int


class Replay1EngineViolationsCacheFirstItemBy(TypedDict):
    cpu: int
    site: int
    time_ns: int


class Replay1EngineViolationsCacheFirstItemFreed(TypedDict):
    cpu: int
    site: int
    time_ns: int


class Replay1EngineViolationsCacheFirstItem(TypedDict):
    allocated: Replay1EngineViolationsCacheFirstItemAllocated | None
    by: Replay1EngineViolationsCacheFirstItemBy
    expected_byte: int | None
    fault: str
    found_byte: int | None
    freed: Replay1EngineViolationsCacheFirstItemFreed | None
    object: int
    offset_bytes: int | None
    """The first byte that is wrong, from the object's start."""
    owner_cache: int | None
    """The number of the cache that the object is of."""


class Replay1EngineViolationsCache(TypedDict):
    cache: str
    first: list[Replay1EngineViolationsCacheFirstItem]
    """The first reports."""
    total: int


class Replay1EngineViolations(TypedDict):
    """What debugging found; null if it was off."""

    caches: list[Replay1EngineViolationsCache]
    reports: int
    rows_free_again: int
    """Rows that free an address again which an earlier row freed."""
    rows_free_unallocated: int
    """Other rows that free what neither a row allocated nor the start has."""


class Replay1Engine(TypedDict):
    caches: list[Replay1EngineCache]
    engine: str
    pages: dict[str, int]
    """Counts of events of the page allocator, by their names; those that are 0 are left out."""
    rows: int
    timeline: Replay1EngineTimeline
    """Slab memory over time: columns of one length."""
    total: Replay1EngineTotal
    """Sums over all caches."""
    violations: Replay1EngineViolations | None
    """What debugging found; null if it was off."""


class Replay1HotplugItem(TypedDict):
    command: str
    time_ns: int
    """Since the recording's first row."""


class Replay1Machine(TypedDict):
    cpu_node: list[int]
    """The node of each CPU."""
    cpus: int
    node_memory_bytes: list[int]
    page_size_bytes: int
    """Bytes of a page."""
    seed: int
    """The seed of random numbers."""


class Replay1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class Replay1Start(TypedDict):
    """How the state at the start was inferred; absent if it was not."""

    inferred: str
    """What was inferred, in a sentence."""
    objects_seen_by_address: int
    """Objects whose addresses show them."""
    page_frees_used: bool
    """Whether frees of page frames set the start."""
    slabs_empty_by_page_frees: int
    """Slabs whose objects were free by that."""
    slabs_only_freed: int
    """Slabs of which only frees are seen: how full they were is drawn to fit the dump."""
    slabs_only_freed_partial: int
    """Of those, slabs that were drawn partial."""
    slabs_seen_by_address: int
    """Slabs that the addresses of later events show."""


class _Replay1(TypedDict):
    answer: str
    """The answer in one sentence."""
    cut_off: Replay1CutOff | None
    """Where the recording was cut off; null for a whole one."""
    engines: list[Replay1Engine]
    events_lost: int
    """Events that the recording lost, as far as it says."""
    hotplug: list[Replay1HotplugItem]
    """CPUs that went off and on."""
    lost_records: int
    """Places in the recording where events were lost."""
    machine: Replay1Machine
    program: Replay1Program
    """The program that wrote the answer, and its version."""
    recording: str
    """The recording's path."""
    recording_fingerprint: str
    """A hash of the recording's content."""
    release: str | None
    """The release of the kernel, as `uname -r` prints it."""
    remarks: list[str]
    """What the answer lacks, then what it rests on: sentences."""
    schema: Literal["slablab.replay.1"]


class Replay1(_Replay1, total=False):
    """slablab replay: a recording through engines"""

    before: Replay1Before | None
    """The state before the recording that was given; absent if there was none."""
    start: Replay1Start | None
    """How the state at the start was inferred; absent if it was not."""


class Reproduce2BestConstant(TypedDict):
    """The sign that most relations have, given as the answer to all."""

    agree: int
    sign: str


class Reproduce2FigureModelledItem(TypedDict):
    cell: int
    """Its place in the experiment."""
    mean: float | None
    sd: float | None


class Reproduce2Figure(TypedDict):
    cells: dict[str, str]
    """The cells: machine, engine and parameters."""
    metric: str
    modelled: list[Reproduce2FigureModelledItem]
    published: float
    published_n: int | None
    published_sd: float | None
    source: str
    unit: str


class Reproduce2LinearItemFit(TypedDict):
    """The line through the means of cells that differ in the parameter alone."""

    at_0: float
    """The line's value where the parameter is 0."""
    cells: str
    """What the cells share: machine, engine, other swept values."""
    each: float
    """What one more of the parameter adds."""
    is_linear: bool
    """Whether that is at most the percentage of the file, and the line rises."""
    points: list[list[int | float]]
    """The parameter and the mean of each cell, ascending, in the metric's unit of tables."""
    residual_percent: float
    """The largest residual over the mean, percent."""


class Reproduce2LinearItem(TypedDict):
    """A number that grows linearly with a parameter."""

    fits: list[Reproduce2LinearItemFit]
    metric: str
    name: str
    parameter: str
    percent: float
    """The largest residual of the line of least squares over the modelled mean."""
    unit: str


class Reproduce2MeritItemColumn(TypedDict):
    """The modelled figures of cells that differ in the parameter alone."""

    cells: str
    chance: float | None
    """The part of all orders that have this tau or a higher one."""
    modelled: list[float | None]
    tau: float | None
    """Kendall's tau-b with the published order."""


class Reproduce2MeritItemOpenItem(TypedDict):
    """A pair of values whose order the draws leave open."""

    cells: str
    """The column."""
    draws: int
    percent: float
    """The draws that have the order of the runs at costs as given."""
    values: list[str]


class Reproduce2MeritItem(TypedDict):
    """An order of merit as a document."""

    agree: int
    """Pairs of values that have the published order in all columns."""
    columns: list[Reproduce2MeritItemColumn]
    differ: int
    metric: str
    name: str
    null_agrees: int
    """Pairs that are published as equal."""
    open: list[Reproduce2MeritItemOpenItem]
    """Pairs with one order in all columns that fewer than 95 % of the draws have."""
    parameter: str
    """Its values are put in order."""
    published: list[float]
    undetermined: int
    """Pairs whose order differs between columns, or is open."""
    values: list[str]


class Reproduce2PinnedItem(TypedDict):
    """A parameter that the mail does not tell. Relations of the same cells are fitted, and count in no score."""

    base: dict[str, str]
    """The cells whose figure was used."""
    how: str
    metric: str
    other: dict[str, str] | None
    """The cells whose figure over that of the base was used; null for that of the base."""
    parameter: str
    published: float
    """The published figure or ratio."""
    tried: list[str]
    value: str


class Reproduce2Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class Reproduce2RelationPairDrawnMost(TypedDict):
    """The assumption that explains the most of the draws' variance; null if chance may explain as much."""

    name: str
    """The cost with its distance, or the parameter."""
    of_ten_percent: float | None
    """By how many percent the ratio grows if a cost grows by 10 %; null for a parameter."""
    percent: float
    """The part of the draws' variance that a line explains, percent."""


class Reproduce2RelationPairDrawn(TypedDict):
    """What draws of all that is assumed say; null without."""

    draws: int
    higher_percent: float
    """Draws whose ratio is above 1 by more than the noise."""
    lower_percent: float
    """Draws whose ratio is below 1 by more than the noise."""
    most: Reproduce2RelationPairDrawnMost | None
    """The assumption that explains the most of the draws' variance; null if chance may explain as much."""
    none_percent: float
    """Draws whose ratio cannot be told from 1."""
    outside_percent: float | None
    """How far the published ratio is outside of the interval, percent of the nearer end; 0 inside. Null if no ratio was published."""
    ratio_high_95: float
    ratio_low_95: float
    """The interval that holds the published ratio in 95 of 100 cases, if the model is right."""


class Reproduce2RelationPair(TypedDict):
    """Two cells; several pairs of a relation are those of swept values."""

    base: int
    """Beside a figure the other's place."""
    cells: str
    drawn: Reproduce2RelationPairDrawn | None
    """What draws of all that is assumed say; null without."""
    other: int
    outside_percent: float | None
    """How far the published ratio is outside of the interval of the draws, without draws of that over the repeats: percent of the nearer end; 0 inside. Null without an interval or a published ratio, and if the modelled ratio is 0 or infinite."""
    p_holm: float | None
    """The p-value after Holm's correction over the table."""
    ratio: float | None
    """Other over base; null if a run failed or it is infinite."""
    ratio_high_95: float | None
    ratio_low_95: float | None
    scatter: float | None
    """The standard deviation that the seed gives the logarithm of a ratio of published means; null with one run."""
    sign: str
    """Lower, none, higher, or open: no sign has 95 % of the draws."""


class Reproduce2Relation(TypedDict):
    """The ratio of two cells, or of a cell over its own published figure."""

    base_metric: str
    """The metric of the base."""
    metric: str
    name: str
    pairs: list[Reproduce2RelationPair]
    published_figure: float | None
    """The figure that the cells are compared with, in the metric's unit; null if there are two cells."""
    published_ratio: float | None
    """1 beside a figure."""
    published_sign: str
    """The word none beside a figure."""
    verdict: str
    within_percent: float | None
    """How near the cells must be to the figure: the ratio or its inverse is above 1 by this at most. Null without a figure."""


class Reproduce2ShownItemCell(TypedDict):
    cell: str
    modelled: list[float | None]
    """The mean of each metric; null if a run failed."""


class Reproduce2ShownItem(TypedDict):
    """A table of metrics of every cell as a document."""

    cells: list[Reproduce2ShownItemCell]
    metrics: list[str]
    name: str
    unit: str | None


class Reproduce2Sizes(TypedDict):
    """How near the ratios are to the published ones; null without any."""

    error: float
    """The root mean square of the logarithm of modelled over published."""
    inside: int
    """Published ratios inside the intervals of the draws."""
    inside_repeats: int
    """Published ratios without draws that are inside the intervals over the repeats."""
    rows: int
    """Ratios of cells that are published and modelled."""
    same_ratio: float
    """The ratio that is the same for all rows and fits best."""
    same_ratio_error: float
    """The error of that one."""
    with_draws: int
    """Published ratios beside which there are draws."""
    with_repeats: int
    """Published ratios without draws beside which there is an interval over the repeats."""


class Reproduce2(TypedDict):
    """slablab reproduce: published figures beside modelled ones"""

    agree: int
    """Relations that agree."""
    answer: str
    """The answer in one sentence."""
    best_constant: Reproduce2BestConstant
    """The sign that most relations have, given as the answer to all."""
    figures: list[Reproduce2Figure]
    fitted: str | None
    """How a parameter was fitted; null if none was."""
    linear: list[Reproduce2LinearItem]
    merit: list[Reproduce2MeritItem]
    name: str
    pinned: list[Reproduce2PinnedItem]
    """Parameters that were pinned on published figures of the base engine."""
    program: Reproduce2Program
    """The program that wrote the answer, and its version."""
    relations: list[Reproduce2Relation]
    rows: int
    """All relations but fitted ones."""
    schema: Literal["slablab.reproduce.2"]
    shown: list[Reproduce2ShownItem]
    sizes: Reproduce2Sizes | None
    """How near the ratios are to the published ones; null without any."""
    source: str | None
    """Who published the figures, where and when."""
    title: str


class ReproduceJoined2Constant(TypedDict):
    """The best constant answer; null without pairs that differ."""

    explains: int
    """Pairs of which that is so."""
    worse: str


class ReproduceJoined2ExperimentBestConstant(TypedDict):
    """The sign that most relations have, given as the answer to all."""

    agree: int
    sign: str


class ReproduceJoined2ExperimentFigureModelledItem(TypedDict):
    cell: int
    """Its place in the experiment."""
    mean: float | None
    sd: float | None


class ReproduceJoined2ExperimentFigure(TypedDict):
    cells: dict[str, str]
    """The cells: machine, engine and parameters."""
    metric: str
    modelled: list[ReproduceJoined2ExperimentFigureModelledItem]
    published: float
    published_n: int | None
    published_sd: float | None
    source: str
    unit: str


class ReproduceJoined2ExperimentLinearItemFit(TypedDict):
    """The line through the means of cells that differ in the parameter alone."""

    at_0: float
    """The line's value where the parameter is 0."""
    cells: str
    """What the cells share: machine, engine, other swept values."""
    each: float
    """What one more of the parameter adds."""
    is_linear: bool
    """Whether that is at most the percentage of the file, and the line rises."""
    points: list[list[int | float]]
    """The parameter and the mean of each cell, ascending, in the metric's unit of tables."""
    residual_percent: float
    """The largest residual over the mean, percent."""


class ReproduceJoined2ExperimentLinearItem(TypedDict):
    """A number that grows linearly with a parameter."""

    fits: list[ReproduceJoined2ExperimentLinearItemFit]
    metric: str
    name: str
    parameter: str
    percent: float
    """The largest residual of the line of least squares over the modelled mean."""
    unit: str


class ReproduceJoined2ExperimentMeritItemColumn(TypedDict):
    """The modelled figures of cells that differ in the parameter alone."""

    cells: str
    chance: float | None
    """The part of all orders that have this tau or a higher one."""
    modelled: list[float | None]
    tau: float | None
    """Kendall's tau-b with the published order."""


class ReproduceJoined2ExperimentMeritItemOpenItem(TypedDict):
    """A pair of values whose order the draws leave open."""

    cells: str
    """The column."""
    draws: int
    percent: float
    """The draws that have the order of the runs at costs as given."""
    values: list[str]


class ReproduceJoined2ExperimentMeritItem(TypedDict):
    """An order of merit as a document."""

    agree: int
    """Pairs of values that have the published order in all columns."""
    columns: list[ReproduceJoined2ExperimentMeritItemColumn]
    differ: int
    metric: str
    name: str
    null_agrees: int
    """Pairs that are published as equal."""
    open: list[ReproduceJoined2ExperimentMeritItemOpenItem]
    """Pairs with one order in all columns that fewer than 95 % of the draws have."""
    parameter: str
    """Its values are put in order."""
    published: list[float]
    undetermined: int
    """Pairs whose order differs between columns, or is open."""
    values: list[str]


class ReproduceJoined2ExperimentPinnedItem(TypedDict):
    """A parameter that the mail does not tell. Relations of the same cells are fitted, and count in no score."""

    base: dict[str, str]
    """The cells whose figure was used."""
    how: str
    metric: str
    other: dict[str, str] | None
    """The cells whose figure over that of the base was used; null for that of the base."""
    parameter: str
    published: float
    """The published figure or ratio."""
    tried: list[str]
    value: str


class ReproduceJoined2ExperimentRelationPairDrawnMost(TypedDict):
    """The assumption that explains the most of the draws' variance; null if chance may explain as much."""

    name: str
    """The cost with its distance, or the parameter."""
    of_ten_percent: float | None
    """By how many percent the ratio grows if a cost grows by 10 %; null for a parameter."""
    percent: float
    """The part of the draws' variance that a line explains, percent."""


class ReproduceJoined2ExperimentRelationPairDrawn(TypedDict):
    """What draws of all that is assumed say; null without."""

    draws: int
    higher_percent: float
    """Draws whose ratio is above 1 by more than the noise."""
    lower_percent: float
    """Draws whose ratio is below 1 by more than the noise."""
    most: ReproduceJoined2ExperimentRelationPairDrawnMost | None
    """The assumption that explains the most of the draws' variance; null if chance may explain as much."""
    none_percent: float
    """Draws whose ratio cannot be told from 1."""
    outside_percent: float | None
    """How far the published ratio is outside of the interval, percent of the nearer end; 0 inside. Null if no ratio was published."""
    ratio_high_95: float
    ratio_low_95: float
    """The interval that holds the published ratio in 95 of 100 cases, if the model is right."""


class ReproduceJoined2ExperimentRelationPair(TypedDict):
    """Two cells; several pairs of a relation are those of swept values."""

    base: int
    """Beside a figure the other's place."""
    cells: str
    drawn: ReproduceJoined2ExperimentRelationPairDrawn | None
    """What draws of all that is assumed say; null without."""
    other: int
    outside_percent: float | None
    """How far the published ratio is outside of the interval of the draws, without draws of that over the repeats: percent of the nearer end; 0 inside. Null without an interval or a published ratio, and if the modelled ratio is 0 or infinite."""
    p_holm: float | None
    """The p-value after Holm's correction over the table."""
    ratio: float | None
    """Other over base; null if a run failed or it is infinite."""
    ratio_high_95: float | None
    ratio_low_95: float | None
    scatter: float | None
    """The standard deviation that the seed gives the logarithm of a ratio of published means; null with one run."""
    sign: str
    """Lower, none, higher, or open: no sign has 95 % of the draws."""


class ReproduceJoined2ExperimentRelation(TypedDict):
    """The ratio of two cells, or of a cell over its own published figure."""

    base_metric: str
    """The metric of the base."""
    metric: str
    name: str
    pairs: list[ReproduceJoined2ExperimentRelationPair]
    published_figure: float | None
    """The figure that the cells are compared with, in the metric's unit; null if there are two cells."""
    published_ratio: float | None
    """1 beside a figure."""
    published_sign: str
    """The word none beside a figure."""
    verdict: str
    within_percent: float | None
    """How near the cells must be to the figure: the ratio or its inverse is above 1 by this at most. Null without a figure."""


class ReproduceJoined2ExperimentShownItemCell(TypedDict):
    cell: str
    modelled: list[float | None]
    """The mean of each metric; null if a run failed."""


class ReproduceJoined2ExperimentShownItem(TypedDict):
    """A table of metrics of every cell as a document."""

    cells: list[ReproduceJoined2ExperimentShownItemCell]
    metrics: list[str]
    name: str
    unit: str | None


class ReproduceJoined2ExperimentSizes(TypedDict):
    """How near the ratios are to the published ones; null without any."""

    error: float
    """The root mean square of the logarithm of modelled over published."""
    inside: int
    """Published ratios inside the intervals of the draws."""
    inside_repeats: int
    """Published ratios without draws that are inside the intervals over the repeats."""
    rows: int
    """Ratios of cells that are published and modelled."""
    same_ratio: float
    """The ratio that is the same for all rows and fits best."""
    same_ratio_error: float
    """The error of that one."""
    with_draws: int
    """Published ratios beside which there are draws."""
    with_repeats: int
    """Published ratios without draws beside which there is an interval over the repeats."""


class ReproduceJoined2Experiment(TypedDict):
    """Published figures beside modelled ones."""

    agree: int
    """Relations that agree."""
    best_constant: ReproduceJoined2ExperimentBestConstant
    """The sign that most relations have, given as the answer to all."""
    figures: list[ReproduceJoined2ExperimentFigure]
    fitted: str | None
    """How a parameter was fitted; null if none was."""
    linear: list[ReproduceJoined2ExperimentLinearItem]
    merit: list[ReproduceJoined2ExperimentMeritItem]
    name: str
    pinned: list[ReproduceJoined2ExperimentPinnedItem]
    """Parameters that were pinned on published figures of the base engine."""
    relations: list[ReproduceJoined2ExperimentRelation]
    rows: int
    """All relations but fitted ones."""
    schema: str
    """slablab.reproduce.2"""
    shown: list[ReproduceJoined2ExperimentShownItem]
    sizes: ReproduceJoined2ExperimentSizes | None
    """How near the ratios are to the published ones; null without any."""
    source: str | None
    """Who published the figures, where and when."""
    title: str


class ReproduceJoined2PairDrawnItemMost(TypedDict):
    """The assumption that explains the most of the draws' variance; null if chance may explain as much."""

    name: str
    """The cost with its distance, or the parameter."""
    of_ten_percent: float | None
    """By how many percent the ratio grows if a cost grows by 10 %; null for a parameter."""
    percent: float
    """The part of the draws' variance that a line explains, percent."""


class ReproduceJoined2PairDrawnItem(TypedDict):
    """Runs of two cells with all costs, and what `[ranges.vary]` names, drawn together."""

    draws: int
    higher_percent: float
    """Draws whose ratio is above 1 by more than the noise."""
    lower_percent: float
    """Draws whose ratio is below 1 by more than the noise."""
    most: ReproduceJoined2PairDrawnItemMost | None
    """The assumption that explains the most of the draws' variance; null if chance may explain as much."""
    none_percent: float
    """Draws whose ratio cannot be told from 1."""
    outside_percent: float | None
    """How far the published ratio is outside of the interval, percent of the nearer end; 0 inside. Null if no ratio was published."""
    ratio_high_95: float
    ratio_low_95: float
    """The interval that holds the published ratio in 95 of 100 cases, if the model is right."""


class ReproduceJoined2Pair(TypedDict):
    base: str
    block: str
    """Where the figures are in the mail."""
    drawn: list[ReproduceJoined2PairDrawnItem]
    """What draws of all that is assumed say, of each swept value; empty without."""
    experiment: str
    modelled_ratios: list[float | None]
    """Of each swept value."""
    other: str
    published_p_holm: float
    published_ratio: float
    published_sign: str
    published_worse: str | None
    verdict: str


class ReproduceJoined2Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class ReproduceJoined2Sizes(TypedDict):
    """How near the ratios of pairs are to the published ones."""

    error: float
    """The root mean square of the logarithm of modelled over published."""
    inside: int
    """Published ratios inside the intervals of the draws."""
    inside_repeats: int
    """Published ratios without draws that are inside the intervals over the repeats."""
    rows: int
    """Ratios of cells that are published and modelled."""
    same_ratio: float
    """The ratio that is the same for all rows and fits best."""
    same_ratio_error: float
    """The error of that one."""
    with_draws: int
    """Published ratios beside which there are draws."""
    with_repeats: int
    """Published ratios without draws beside which there is an interval over the repeats."""


class ReproduceJoined2(TypedDict):
    """slablab reproduce: the experiments of one mail together"""

    answer: str
    """The answer in one sentence."""
    constant: ReproduceJoined2Constant | None
    """The best constant answer; null without pairs that differ."""
    experiments: list[ReproduceJoined2Experiment]
    name: str
    pairs: list[ReproduceJoined2Pair]
    """Each two engines of which the mail publishes figures with their scatter."""
    program: ReproduceJoined2Program
    """The program that wrote the answer, and its version."""
    schema: Literal["slablab.reproduce.joined.2"]
    sizes: ReproduceJoined2Sizes | None
    """How near the ratios of pairs are to the published ones."""
    summary: list[str] | None


class Suite1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class Suite1RowDifference(TypedDict):
    """A number beside the main metric, of both cells."""

    base: float
    """Its mean over the base's runs."""
    name: str
    """What it is: a metric, an event, or what was counted of a lock."""
    other: float
    """Its mean over the other's runs."""
    unit: str
    """Its unit."""


class Suite1Row(TypedDict):
    base_mean: float | None
    base_n: int | None
    base_sd: float | None
    below_noise: str
    better: str
    differences: list[Suite1RowDifference]
    gain_percent: float | None
    """How much better the other value is than the base, in percent; below 0 if it is worse."""
    gain_percent_high_95: float | None
    gain_percent_low_95: float | None
    machine: str
    metric: str
    other_mean: float | None
    other_n: int | None
    other_sd: float | None
    p: float | None
    p_holm: float | None
    """The p-value after Holm's correction over the table."""
    parameters: str
    result: str
    unit: str
    why: str
    """What the pair shows."""
    workload: str


class Suite1(TypedDict):
    """slablab suite: two engines over every workload"""

    answer: str
    """The answer in one sentence."""
    base: str
    failed: list[str]
    """Why pairs have no numbers."""
    noise_percent: float
    """Differences of means below this cannot be told on a real machine."""
    other: str
    program: Suite1Program
    """The program that wrote the answer, and its version."""
    repeats: int | None
    """Runs of each cell."""
    rows: list[Suite1Row]
    schema: Literal["slablab.suite.1"]
    seed: int | None
    """The seed of random numbers."""
    significance: float
    size: str | None
    summary: str
    test: str


class Top1Cache(TypedDict):
    barn_objects: int
    bytes: int
    """Bytes of the slabs."""
    free_objects: int
    """Free objects in slabs."""
    live_objects: int
    name: str
    object_bytes: int
    objects: int
    objects_per_slab: int
    pages_per_slab: int
    parked_objects: int
    """Free objects in sheaves and barns."""
    pinned_bytes: int
    """Bytes of the free objects of slabs that have an object in use, so that they cannot go back."""
    sheaf_objects: int
    slabs: int
    slot_bytes: int
    """Bytes from one object to the next."""
    sparse_bytes: int
    """Bytes of the free objects of those slabs."""
    sparse_objects: int
    """Objects in use of those slabs: in sheaves and barns, too."""
    sparse_slabs: int
    """Slabs of which no more than a quarter is in use."""


class Top1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class _Top1Purge(TypedDict):
    heap_bytes_before: int
    """`heap_bytes` before the purge."""


class Top1Purge(_Top1Purge, total=False):
    """With `--purge`."""

    given_back_bytes: int | None
    """Bytes that went back to the kernel. Missing: no thread of the process came to a slow path in 2 s."""
    threads: int | None
    """Threads that had not emptied their slots when the purge was done: each does it on its next slow path."""


class _Top1(TypedDict):
    answer: str
    """The answer in one sentence."""
    caches: list[Top1Cache]
    command: str
    engine: str
    free_frame_bytes: int
    """Bytes of free page frames."""
    given_back_bytes: int
    """Bytes of page frames that were given back to the kernel, since the process began."""
    heap_bytes: int
    live_bytes: int
    """Bytes of allocated objects."""
    major_faults: int
    mapping_bytes: int
    mappings: int
    """Blocks that have a mapping of their own."""
    minor_faults: int
    page_bytes: int
    pid: int
    program: Top1Program
    """The program that wrote the answer, and its version."""
    schema: Literal["slablab.top.1"]
    slots: str
    """Whose the slots are: of each CPU or of each thread."""
    slots_used: int
    version: str
    """The version of the process's library."""


class Top1(_Top1, total=False):
    """slablab top: what a running process holds"""

    purge: Top1Purge | None
    """With `--purge`."""


class VerifyCounters1CacheCounter(TypedDict):
    """A counter."""

    predicted: int
    """The engine's."""
    real: int
    """The kernel's."""


class VerifyCounters1Cache(TypedDict):
    """The counters of one cache."""

    cache: str
    """Its name."""
    counters: dict[str, VerifyCounters1CacheCounter]
    """By the name of the event."""


class VerifyCounters1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class VerifyCounters1Seed(TypedDict):
    """A figure over draws of the start."""

    by_rank: list[float]
    """The figure of each draw, in rising order."""
    least: float
    median: float
    most: float
    real: int | None
    """What the kernel did, if the figure is a count."""


class VerifyCounters1(TypedDict):
    """slablab verify: the model beside the kernel's counters"""

    above_100: int
    """Counters above 100."""
    above_100_over_10_percent: int
    """Counters above 100 that are more than 10 % off."""
    above_100_over_5_percent: int
    """Counters above 100 that are more than 5 % off."""
    answer: str
    """The answer in one sentence."""
    caches: list[VerifyCounters1Cache]
    """Caches whose trace is complete."""
    counted_real: int
    """Sum of the kernel's counters."""
    counters: int
    """Counters that are compared."""
    counters_exact: int
    """Counters that are exact."""
    engine: str
    """The engine that predicts."""
    errors: int
    """Sum of the differences."""
    label: str
    """The workload of the counters run."""
    program: VerifyCounters1Program
    """The program that wrote the answer, and its version."""
    schema: Literal["slablab.verify-counters.1"]
    seeds: dict[str, VerifyCounters1Seed]
    """Ranges over other seeds, by name; empty for one seed."""


class Verify1Cache(TypedDict):
    active_change_predicted: int
    active_change_real: int
    active_start: int
    cache: str
    error_bytes: int
    slab_bytes_change_predicted: int
    slab_bytes_change_real: int
    slabs_change_predicted: int
    slabs_change_real: int
    slabs_start: int
    why: str


class _Verify1CutOff(TypedDict):
    at_bytes: int
    """Bytes that are there, of the decompressed recording."""


class Verify1CutOff(_Verify1CutOff, total=False):
    """Where the recording was cut off; null for a whole one."""

    of_bytes: int | None
    """Bytes that the recording should have, if it says so."""
    why: str | None
    """Why the recorder ended it early, if it did; else the file was cut."""


class Verify1NullModelsNothingChanges(TypedDict):
    """Nothing changes."""

    skill_active_bytes: float
    skill_slab_bytes: float


class Verify1NullModelsOwnBalance(TypedDict):
    """The recording's own balance of allocations and frees, in whole slabs."""

    skill_active_bytes: float
    skill_slab_bytes: float


class Verify1NullModels(TypedDict):
    """What predictions without an engine get."""

    nothing_changes: Verify1NullModelsNothingChanges
    """Nothing changes."""
    own_balance: Verify1NullModelsOwnBalance
    """The recording's own balance of allocations and frees, in whole slabs."""


class Verify1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class Verify1SameSlabs(TypedDict):
    """Which slabs serve and go, beside the kernel's; null if the recording's addresses do not tell slabs."""

    allocs: int
    """Allocations of which both slabs are known."""
    both: int
    """Of these, returned by the engine."""
    emptied: int
    """Slabs from before that the kernel returned."""
    others: int
    """Slabs from before that the engine returned, and the kernel did not."""
    same: int
    """Of these, served from the real slab."""


class Verify1Seed(TypedDict):
    """A figure over draws of the start."""

    by_rank: list[float]
    """The figure of each draw, in rising order."""
    least: float
    median: float
    most: float
    real: int | None
    """What the kernel did, if the figure is a count."""


class Verify1SlabPagesOrder(TypedDict):
    order: int
    slabs_returned_predicted: int
    slabs_returned_real: int
    slabs_taken_predicted: int
    slabs_taken_real: int


class Verify1SlabPages(TypedDict):
    """Slabs that page events show; null for a recording without page events."""

    error_percent: float
    """By how many pages the prediction is off, in percent of the pages that really moved."""
    error_percent_own_balance: float
    """By how many pages the recording's own balance, in whole slabs, is off, in percent of the pages that really moved."""
    orders: list[Verify1SlabPagesOrder]
    """The orders of which the kernel or the engine took or returned a slab."""


class Verify1SnapshotsListedFreeObjects(TypedDict):
    """Free objects of those."""

    predicted: int
    """The engine's."""
    real: int
    """The kernel's."""


class Verify1SnapshotsListedSlabs(TypedDict):
    """Slabs on nodes' lists at the end."""

    predicted: int
    """The engine's."""
    real: int
    """The kernel's."""


class Verify1SnapshotsSlabs(TypedDict):
    """Slabs at the end."""

    predicted: int
    """The engine's."""
    real: int
    """The kernel's."""


class Verify1SnapshotsStartGuessedItem(TypedDict):
    """How far the guessed start of one cache is off."""

    cache: str
    """The cache."""
    error_objects: float
    """Mean error of a slab's objects in use, slabs sorted by them."""
    error_objects_freed: float
    """Mean error of the objects in use of those, by address."""
    error_objects_freed_full: float
    """The same, if each is full."""
    error_objects_mean: float
    """The same, if each partial slab is as full as their mean."""
    objects_per_slab: int
    """Objects of a slab."""
    slabs: int
    """Slabs that were read."""
    slabs_freed: int
    """Slabs of which only frees are seen, and that were read."""
    slabs_guessed: int
    """Slabs that are guessed."""


class Verify1SnapshotsUntracedItem(TypedDict):
    """Objects by which a cache changed without an event: allocations less frees."""

    bytes: int
    """The bytes of those."""
    cache: str
    """The cache."""
    objects: int
    """More objects in use than the recording's events say."""


class Verify1Snapshots(TypedDict):
    """What snapshots of every slab add; null for a recording without them."""

    caches: int
    """Caches that were read at the start and at the end, and are in the recording."""
    caches_exact: int
    """Caches whose number of slabs on nodes' lists is exact at the end."""
    listed_free_objects: Verify1SnapshotsListedFreeObjects
    """Free objects of those."""
    listed_slabs: Verify1SnapshotsListedSlabs
    """Slabs on nodes' lists at the end."""
    slabs: Verify1SnapshotsSlabs
    """Slabs at the end."""
    start_guessed: list[Verify1SnapshotsStartGuessedItem]
    """How far the start would be off if it were guessed, the largest error first."""
    untraced: list[Verify1SnapshotsUntracedItem]
    """Objects by which caches changed without an event, the most bytes first."""


class Verify1Start(TypedDict):
    """What of the start was inferred; null if nothing was."""

    inferred: str
    """What was inferred, in a sentence."""
    objects_seen_by_address: int
    """Objects whose addresses show them."""
    page_frees_used: bool
    """Whether frees of page frames set the start."""
    slabs_empty_by_page_frees: int
    """Slabs whose objects were free by that."""
    slabs_only_freed: int
    """Slabs of which only frees are seen: how full they were is drawn to fit the dump."""
    slabs_only_freed_partial: int
    """Of those, slabs that were drawn partial."""
    slabs_seen_by_address: int
    """Slabs that the addresses of later events show."""


class Verify1TracedItem(TypedDict):
    caches: int
    error_bytes: int
    events: str
    """Which of their allocations and frees have events: all, some, none."""
    skill_slab_bytes: float | None
    skill_slab_bytes_own_balance: float | None
    slab_bytes_changed_real: int


class Verify1(TypedDict):
    """slablab verify: the model beside dumps around a recording"""

    answer: str
    """The answer in one sentence."""
    caches: list[Verify1Cache]
    """Caches that changed or should have, the most wrong first."""
    cut_off: Verify1CutOff | None
    """Where the recording was cut off; null for a whole one."""
    engine: str
    """The engine that predicts."""
    events_lost: int
    """Events that the recording lost, as far as it says."""
    null_models: Verify1NullModels
    """What predictions without an engine get."""
    page_frees_used: bool
    """Whether frees of page frames set the start."""
    program: Verify1Program
    """The program that wrote the answer, and its version."""
    recording: str
    """The recording's path."""
    recording_fingerprint: str
    """A hash of the recording's content."""
    recording_rows: int
    """Events of the recording."""
    release: str | None
    """The release of the kernel, as `uname -r` prints it."""
    same_slabs: Verify1SameSlabs | None
    """Which slabs serve and go, beside the kernel's; null if the recording's addresses do not tell slabs."""
    schema: Literal["slablab.verify.1"]
    seeds: dict[str, Verify1Seed]
    """Ranges over other seeds, by name; empty for one seed."""
    skill_active_bytes: float
    """1 - sum |predicted - real| / sum |real|, in bytes of active objects."""
    skill_slab_bytes: float
    """1 - sum |predicted - real| / sum |real|, in bytes of slabs."""
    slab_pages: Verify1SlabPages | None
    """Slabs that page events show; null for a recording without page events."""
    snapshots: Verify1Snapshots | None
    """What snapshots of every slab add; null for a recording without them."""
    start: Verify1Start | None
    """What of the start was inferred; null if nothing was."""
    traced: list[Verify1TracedItem]
    """Caches in three groups: all, some or none of their allocations and frees have events."""


class What1CacheShrinkItem(TypedDict):
    """One way to shrink a cache."""

    cost: str | None
    """Its cost and its limits."""
    how: str
    """What to do."""
    id: str
    """The name of the method, by which entries call it."""
    run: str | None
    """The command; words in capitals are for the user to fill in."""


class _What1CacheSize(TypedDict):
    arch: str
    """As `uname -m` says it: 'x86_64'."""
    kernel: str
    """The kernel's release: '6.12'."""
    page_bytes: int
    """Bytes of a page."""


class What1CacheSize(_What1CacheSize, total=False):
    """The size of an object in one kernel."""

    object_bytes: int | None
    """Bytes of an object, without alignment and metadata (`object_size` in sysfs)."""
    object_bytes_at_most: int | None
    """Bytes that an object has at most, where the kernel gave only the largest of the caches it had merged."""
    slot: str | None
    """The made-up name of the merged cache it was part of."""
    when: str | None
    """What else the size depends on: '4 nodes'."""


class What1Cache(TypedDict):
    """A cache, or a family of caches."""

    also: list[str]
    """Other names of the same cache, in other kernels."""
    asked: str
    """The name that was asked for."""
    cannot_shrink: str | None
    """Why user space cannot shrink it."""
    created_by: str
    """The code that creates the cache, and when it does."""
    grows_with: str | None
    """What makes it grow."""
    has_shrinker: bool
    """Whether a shrinker frees unused objects when the kernel needs memory."""
    module: str | None
    """The module that creates it, where the kernel may have it as one and a way to shrink it needs the name."""
    name: str
    """The cache's name; with one `*`, a pattern."""
    pattern: bool
    """Whether it stands for a family of names."""
    reclaimable: bool | None
    """The kernel counts its pages as reclaimable (`SReclaimable`; `reclaim_account` in sysfs); unknown for most patterns."""
    seen_merged_with: list[str]
    """Caches that shared their slabs with this one in some kernel."""
    shrink: list[What1CacheShrinkItem]
    """Ways to shrink it, the mildest first. Empty only where `cannot_shrink` says why."""
    sizes: list[What1CacheSize]
    """Sizes seen."""
    subsystem: str
    """Whose it is: 'ext4', 'network, TCP'."""
    what: str
    """What an object of it is."""


class What1Cache2MergedFlag(TypedDict):
    """One letter of a made-up name."""

    letter: str
    """As it stands in the name."""
    meaning: str
    """What it stands for, in words."""


class What1Cache2MergedSeenItem(TypedDict):
    caches: list[str]
    machine: str


class What1Cache2Merged(TypedDict):
    """What a made-up name says."""

    flags: list[What1Cache2MergedFlag]
    """The letters in it, in their order."""
    seen: list[What1Cache2MergedSeenItem]
    """The caches that were in it, in each kernel that was looked at."""
    slab_size_bytes: int
    """Bytes from one object to the next, alignment and metadata included (`slab_size` in sysfs)."""


class What1Cache2(TypedDict):
    """A cache that several caches share, by the name that SLUB made up."""

    asked: str
    merged: What1Cache2Merged
    """What a made-up name says."""
    name: str


class What1CorruptionExplainedItem(TypedDict):
    """A part of the explanation."""

    about: str
    """What it is about, in a word or two; empty if it is about the same as the part before."""
    command: str | None
    """A command that shows or changes it."""
    text: str
    """The words."""


class What1Corruption(TypedDict):
    """The report for programs."""

    allocated_in: str | None
    cache: str | None
    explained: list[What1CorruptionExplainedItem]
    freed_in: str | None
    line: int
    """The line of the text where it begins."""
    object: int | None
    """The address of the object."""
    object_is_of: str | None
    """The cache that the object is of, where it was freed to another."""
    words: str
    """The kernel's words."""
    written: list[int] | None
    """The first and the last byte that was written."""


class What1MessageCgroup(TypedDict):
    """The memory cgroup whose copy of the cache it was."""

    id: int
    name: str


class What1MessageExplainedItem(TypedDict):
    """A part of the explanation."""

    about: str
    """What it is about, in a word or two; empty if it is about the same as the part before."""
    command: str | None
    """A command that shows or changes it."""
    text: str
    """The words."""


class What1MessageNode(TypedDict):
    """The cache on a node."""

    free_objects: int
    """Free objects of partial slabs."""
    node: int
    objects: int
    """Objects there is room for."""
    slabs: int


class What1Message(TypedDict):
    """The message and its explanation as a document."""

    allocator: str
    cache: str | None
    cgroup: What1MessageCgroup | None
    """The memory cgroup whose copy of the cache it was."""
    cpu: int | None
    """The CPU that asked."""
    explained: list[What1MessageExplainedItem]
    gfp: int | None
    gfp_names: str | None
    lines: list[int]
    """Lines of the text where equal messages begin."""
    may_sleep: bool | None
    """Whether its caller could sleep; null if the flags do not tell."""
    message: str
    """The words of its first line."""
    min_order: int | None
    node: int | None
    """The node that was asked for; below 0, any."""
    nodes: list[What1MessageNode]
    object_size_bytes: int | None
    order: int | None
    slab_size_bytes: int | None


class What1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class What1(TypedDict):
    """slablab what: the purpose of caches"""

    answer: str
    """The answer in one sentence."""
    caches: list[What1Cache | What1Cache2]
    corruptions: list[What1Corruption]
    """Reports of damaged or lost objects."""
    messages: list[What1Message]
    program: What1Program
    """The program that wrote the answer, and its version."""
    schema: Literal["slablab.what.1"]


class Whatif1AgainstMismatch(TypedDict):
    """A cache whose slabs have another shape than predicted."""

    cache: str
    """The name."""
    objs_per_slab_real: int
    """Objects in a slab of the boot."""
    objs_per_slab_whatif: int
    """Objects in a slab, predicted."""
    order_real: int
    """Pages of a slab, log2, in the boot."""
    order_whatif: int
    """Pages of a slab, log2, predicted."""
    slab_size_real_bytes: int
    """Bytes from one object to the next in the boot."""
    slab_size_whatif_bytes: int
    """Bytes from one object to the next, predicted."""


class Whatif1AgainstWorstItem(TypedDict):
    """By how much the prediction of a cache was off."""

    cache: str
    """The name."""
    off_bytes: int
    """Bytes predicted beyond those of the boot."""
    slabs_real: int
    """Slabs of the boot."""
    slabs_whatif: int
    """Slabs, predicted."""


class Whatif1Against(TypedDict):
    """The prediction beside a boot that had the change; null if no such boot was given."""

    caches: int
    """Caches that both have."""
    error: float
    """The prediction over the truth, less one."""
    error_by_cpus: float | None
    """The error of the guess that memory is proportional to the number of CPUs; `None` if that number is unchanged."""
    error_unchanged: float
    """The error of the guess that memory stays as it is: the guess over the boot's memory, less one."""
    mismatches: list[Whatif1AgainstMismatch]
    """Caches where one of them is not."""
    objs_per_slab_exact: int
    """Caches whose objects per slab are as predicted."""
    only_one: list[str]
    """Names that are in one of the two only."""
    orders_exact: int
    """Of those, caches whose order is as predicted."""
    slab_sizes_exact: int
    """Caches whose bytes per object are as predicted."""
    total_real_bytes: int
    """Bytes of all slabs of the boot."""
    waste_real_bytes: int
    """Bytes behind the last object of all slabs of the boot."""
    worst: list[Whatif1AgainstWorstItem]
    """The caches that were off most in bytes."""


class Whatif1MissingItem(TypedDict):
    """A file that would have told more."""

    command: str | None
    """The one command that makes it readable or collects it; `None` if there is none."""
    costs: str
    """What cannot be said without it."""
    file: str
    """Its path on the machine, such as `/proc/slabinfo`."""
    why: str
    """Why it is not there: not in the bundle, no permission, this kernel has none."""


class Whatif1Program(TypedDict):
    """The program that wrote the answer, and its version."""

    name: Literal["slablab"]
    version: str


class Whatif1Row(TypedDict):
    cache: str
    objects: int
    objects_whatif: int
    objs_per_slab: int
    objs_per_slab_whatif: int
    order: int
    order_whatif: int
    ordinal: int
    """Which of several caches of one name: 0 for the first."""
    slab_size_bytes: int
    slab_size_whatif_bytes: int
    slabs: int
    slabs_whatif: int
    total_bytes: int
    total_whatif_bytes: int
    waste_bytes: int
    waste_whatif_bytes: int
    whatif: str


class Whatif1VariantChange(TypedDict):
    """What is different; null is as today."""

    config: str | None
    cpus: int | None
    debug: str | None
    engine: str | None
    max_order: int | None
    merge: bool | None
    min_objects: int | None
    min_order: int | None
    page_size_bytes: int | None
    policy: str | None
    sheaf_capacity: str | None


class Whatif1VariantRange(TypedDict):
    """Where `total_low_bytes` and `total_high_bytes` are from. Null if the change has no effect (`measured` is true), or if slab memory is not predicted (`measured` is false; `unknown` says why)."""

    after_load: bool | None
    """Whether the dump was taken after a load; this and the other two are null for a guess."""
    coverage: float | None
    """The share of measured boots that fall inside."""
    factor: float | None
    """The ends are the prediction divided by this, and multiplied by it; null where the two differ."""
    more_than_8_cpus: bool | None
    question: str | None
    """What kind of change was measured."""


class Whatif1VariantRules(TypedDict):
    """What chooses orders today."""

    cpus: int
    """CPUs that are present."""
    max_order: int
    min_objects: int
    min_order: int
    page_size_bytes: int
    rule: str
    """The order rule, by the name that `--policy` takes."""


class Whatif1VariantRulesWhatif(TypedDict):
    """What chooses orders with the change."""

    cpus: int
    """CPUs that are present."""
    max_order: int
    min_objects: int
    min_order: int
    page_size_bytes: int
    rule: str
    """The order rule, by the name that `--policy` takes."""


class Whatif1VariantToday(TypedDict):
    """All caches today."""

    objects: int
    """Objects there is room for."""
    slabs: int
    """Slabs."""
    total_bytes: int
    """Bytes of the slabs."""
    total_high_bytes: int
    """The most that is likely."""
    total_low_bytes: int
    """The least that is likely; for today, the sum itself."""
    waste_bytes: int
    """Bytes behind the last object of all slabs."""


class Whatif1VariantTotal(TypedDict):
    """All caches with the change."""

    objects: int
    """Objects there is room for."""
    slabs: int
    """Slabs."""
    total_bytes: int
    """Bytes of the slabs."""
    total_high_bytes: int
    """The most that is likely."""
    total_low_bytes: int
    """The least that is likely; for today, the sum itself."""
    waste_bytes: int
    """Bytes behind the last object of all slabs."""


class Whatif1Variant(TypedDict):
    assumed: list[str]
    """What the numbers of this change assume, in sentences."""
    change: Whatif1VariantChange
    """What is different; null is as today."""
    measured: bool
    """Whether boots measured predictions of this kind."""
    range: Whatif1VariantRange | None
    """Where `total_low_bytes` and `total_high_bytes` are from. Null if the change has no effect (`measured` is true), or if slab memory is not predicted (`measured` is false; `unknown` says why)."""
    rules: Whatif1VariantRules
    """What chooses orders today."""
    rules_whatif: Whatif1VariantRulesWhatif
    """What chooses orders with the change."""
    today: Whatif1VariantToday
    """All caches today."""
    total: Whatif1VariantTotal
    """All caches with the change."""
    unexplained: list[str]
    """Caches whose order today is not what the rules give."""
    unknown: str | None
    """Why slab memory is not predicted: `total` is then for the objects of today. Null if it is predicted."""
    whatif: str
    """The change in words."""


class Whatif1(TypedDict):
    """slablab whatif: slab memory with other settings"""

    against: Whatif1Against | None
    """The prediction beside a boot that had the change; null if no such boot was given."""
    answer: str
    """The answer in one sentence."""
    cpus_online: int | None
    """CPUs that were online."""
    evidence: list[str]
    """What was assumed of the input, in sentences."""
    input: str
    missing: list[Whatif1MissingItem]
    """Files that were not there: why, what that costs, and the command that gets the file."""
    page_size_bytes: int
    """Bytes of a page."""
    program: Whatif1Program
    """The program that wrote the answer, and its version."""
    release: str | None
    """The release of the kernel, as `uname -r` prints it."""
    rows: list[Whatif1Row]
    """Every cache of every change: each figure today, and with the change under its key with `whatif`."""
    schema: Literal["slablab.whatif.1"]
    variants: list[Whatif1Variant]
    """The changes."""


