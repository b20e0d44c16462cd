// SPDX-License-Identifier: MIT OR Apache-2.0
/* CPUs, nodes and zonelists of the modelled machine, in the tree's own structures; then the allocator boots. */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/init.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/nodemask.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include <asm/cpufeature.h>
#include <asm/paravirt.h>
#include <asm/processor.h>
#include "slab.h"
#include "host.h"

const struct slablab_machine *slablab_machine;
static u64 arena_used;

unsigned long page_offset_base, vmemmap_base, vmalloc_base, phys_base;
unsigned long __per_cpu_offset[NR_CPUS];
struct cpumask __cpu_possible_mask, __cpu_online_mask, __cpu_present_mask, __cpu_active_mask;
atomic_t __num_online_cpus;
unsigned int nr_cpu_ids, nr_node_ids, nr_online_nodes;
nodemask_t node_states[NR_NODE_STATES];
struct pglist_data *node_data[MAX_NUMNODES];
struct cpuinfo_x86 boot_cpu_data;
atomic_long_t _totalram_pages;
cpumask_var_t node_to_cpumask_map[MAX_NUMNODES];
gfp_t gfp_allowed_mask = __GFP_BITS_MASK;
bool static_key_initialized = true;
static struct task_struct *task;

/* As behind a disabled preemption: the count never reaches what asks for a switch. */
#define COUNT (PREEMPT_NEED_RESCHED + 1)

DEFINE_PER_CPU(int, numa_node);
#if SLABLAB_RELEASE < 0x060f00
DEFINE_PER_CPU_READ_MOSTLY(unsigned long, this_cpu_off);
#else
DEFINE_PER_CPU_CACHE_HOT(unsigned long, this_cpu_off);
#endif
#if SLABLAB_RELEASE < 0x060200
DEFINE_PER_CPU_READ_MOSTLY(int, cpu_number);
DEFINE_PER_CPU(struct task_struct *, current_task);
DEFINE_PER_CPU(int, __preempt_count) = COUNT;
#define set_hot(cpu) (per_cpu(cpu_number, cpu) = (cpu), per_cpu(current_task, cpu) = task)
#elif SLABLAB_RELEASE < 0x060f00
DEFINE_PER_CPU_ALIGNED(struct pcpu_hot, pcpu_hot) = { .preempt_count = COUNT };
#define set_hot(cpu) (per_cpu(pcpu_hot.cpu_number, cpu) = (cpu), per_cpu(pcpu_hot.current_task, cpu) = task)
#else
DEFINE_PER_CPU_CACHE_HOT(int, cpu_number);
DEFINE_PER_CPU_CACHE_HOT(struct task_struct *, current_task);
/* An int before 7.3. */
DEFINE_PER_CPU_CACHE_HOT(typeof(__preempt_count), __preempt_count) = COUNT;
#define set_hot(cpu) (per_cpu(cpu_number, cpu) = (cpu), per_cpu(current_task, cpu) = task)
#endif

extern unsigned long slablab_save_fl(void);
extern void slablab_irq_disable(void), slablab_irq_enable(void);

struct paravirt_patch_template pv_ops = {
	.irq.save_fl = { .func = slablab_save_fl },
	.irq.irq_disable = { .func = slablab_irq_disable },
	.irq.irq_enable = { .func = slablab_irq_enable },
};

extern struct obs_kernel_param slablab_setup_start[], slablab_setup_end[];
extern const struct kernel_param slablab_params_start[], slablab_params_end[];
extern initcall_entry_t slablab_initcalls_start[], slablab_initcalls_end[];
extern char slablab_percpu_start[], slablab_percpu_end[];

void *slablab_arena(u64 bytes)
{
	u64 at = ALIGN(arena_used, 64);

	if (at + bytes > slablab_machine->arena_bytes)
		slablab_end(SLABLAB_PANIC, "slablab: the shim's own memory is used up", 0);
	arena_used = at + bytes;
	return (void *)(slablab_machine->arena + at);
}

/* Areas of CPUs: behind the section lies what the tree asks for at run time. */
static u64 percpu_used;

void *slablab_percpu_alloc(size_t size, size_t align)
{
	u64 section = slablab_percpu_end - slablab_percpu_start;
	u64 at = ALIGN(max(percpu_used, section), max_t(size_t, align, 8));

	if (at + size > slablab_machine->percpu_stride)
		return NULL;
	percpu_used = at + size;
	return slablab_percpu_start + at;
}

#ifdef __alloc_percpu
void __percpu *pcpu_alloc_noprof(size_t size, size_t align, bool reserved, gfp_t gfp)
#else
void __percpu *__alloc_percpu(size_t size, size_t align)
#endif
{
	return (void __percpu *)slablab_percpu_alloc(size, align);
}

void free_percpu(void __percpu *pdata)
{
}

static void set_cpus(const struct slablab_machine *m)
{
	u32 cpu;

	nr_cpu_ids = m->cpus;
#ifdef CONFIG_CPUMASK_OFFSTACK
	for (cpu = 0; cpu < m->nodes; cpu++)
		node_to_cpumask_map[cpu] = slablab_arena(cpumask_size());
#endif
	for (cpu = 0; cpu < m->cpus; cpu++) {
		__per_cpu_offset[cpu] = m->percpu + cpu * m->percpu_stride - (u64)slablab_percpu_start;
		cpumask_set_cpu(cpu, &__cpu_possible_mask);
		cpumask_set_cpu(cpu, &__cpu_present_mask);
		if (m->cpu_online[cpu]) {
			cpumask_set_cpu(cpu, &__cpu_online_mask);
			cpumask_set_cpu(cpu, node_to_cpumask_map[m->cpu_node[cpu]]);
			atomic_inc(&__num_online_cpus);
		}
		per_cpu(this_cpu_off, cpu) = __per_cpu_offset[cpu];
		per_cpu(numa_node, cpu) = m->cpu_node[cpu];
		set_hot(cpu);
	}
}

static struct zone *zone_of(u32 node, u32 zone)
{
	return &node_data[node]->node_zones[zone];
}

/* The program's zones are DMA, DMA32, Normal; a tree may be without the first. */
static u32 native_zone(u32 zone)
{
	switch (zone) {
#ifdef CONFIG_ZONE_DMA
	case 0:
		return ZONE_DMA;
#endif
#ifdef CONFIG_ZONE_DMA32
	case 1:
		return ZONE_DMA32;
#endif
	default:
		return ZONE_NORMAL;
	}
}

static void set_nodes(const struct slablab_machine *m)
{
	u32 node, zone;

	nr_node_ids = m->nodes;
	for (node = 0; node < m->nodes; node++) {
		node_data[node] = slablab_arena(sizeof(struct pglist_data));
		node_data[node]->node_id = node;
		node_set(node, node_states[N_POSSIBLE]);
		node_set(node, node_states[N_ONLINE]);
		nr_online_nodes++;
		if (m->node_memory[node]) {
			node_set(node, node_states[N_NORMAL_MEMORY]);
			node_set(node, node_states[N_MEMORY]);
		}
		for (zone = 0; zone < MAX_NR_ZONES; zone++) {
			zone_of(node, zone)->node = node;
			zone_of(node, zone)->zone_pgdat = node_data[node];
		}
	}
	for (node = 0; node < m->cpus; node++)
		node_set(m->cpu_node[node], node_states[N_CPU]);
	for (node = 0; node < m->nodes; node++) {
		const u16 *entry = m->zonelists + (u64)node * m->zonelist_stride;
		struct zoneref *ref = node_data[node]->node_zonelists[ZONELIST_FALLBACK]._zonerefs;
		struct zoneref *own = node_data[node]->node_zonelists[ZONELIST_NOFALLBACK]._zonerefs;

		for (; entry[0] != SLABLAB_END; entry += 2, ref++) {
			ref->zone = zone_of(entry[0], native_zone(entry[1]));
			ref->zone_idx = native_zone(entry[1]);
			if (entry[0] == node)
				*own++ = *ref;
		}
	}
}

#if SLABLAB_RELEASE < 0x070300
#define NODES nodemask_t
#else
#define NODES const nodemask_t
#endif

struct zoneref *__next_zones_zonelist(struct zoneref *z, enum zone_type highest, NODES *nodes)
{
	while (z->zone && (zonelist_zone_idx(z) > highest || (nodes && !node_isset(zonelist_node_idx(z), *nodes))))
		z++;
	return z;
}

unsigned int mempolicy_slab_node(void)
{
	return numa_mem_id();
}

static int set_number(const char *value, const struct kernel_param *param)
{
	return kstrtouint(value, 0, param->arg);
}

const struct kernel_param_ops param_ops_uint = { .set = set_number };

/* Hands a parameter of the boot line to the function that the tree registered for it: 0 unknown, 1 taken. */
u64 slablab_parameter(const char *name, const char *value)
{
	struct obs_kernel_param *param;
	const struct kernel_param *other;
	char *text;
	size_t length = strlen(value);

	for (param = slablab_setup_start; param < slablab_setup_end; param++) {
		size_t known = strlen(param->str);
		bool takes_value = known && param->str[known - 1] == '=';

		if (strncmp(param->str, name, known - takes_value) || strlen(name) != known - takes_value)
			continue;
		text = slablab_arena(length + 1);
		memcpy(text, value, length + 1);
		param->setup_func(text);
		return 1;
	}
	for (other = slablab_params_start; other < slablab_params_end; other++)
		if (!strcmp(other->name, name))
			return !other->ops->set(value, other);
	return 0;
}

/* The first call: what parameters need. */
u64 slablab_prepare(const struct slablab_machine *m)
{
	slablab_machine = m;
	page_offset_base = m->page_offset;
	vmemmap_base = m->struct_pages;
	task = slablab_arena(sizeof(struct task_struct));
	boot_cpu_data.x86_cache_alignment = boot_cpu_data.x86_clflush_size = L1_CACHE_BYTES;
	set_bit(X86_FEATURE_CX16, (unsigned long *)boot_cpu_data.x86_capability);
	/* Else the cycle counter, from which the allocator takes chance, reads 0. */
	set_bit(X86_FEATURE_TSC, (unsigned long *)boot_cpu_data.x86_capability);
	atomic_long_set(&_totalram_pages, m->frames);
	set_cpus(m);
	set_nodes(m);
	return 0;
}

u64 slablab_boot(void)
{
	initcall_entry_t *call;

	kmem_cache_init();
	kmem_cache_init_late();
#ifndef SLABLAB_SLAB
	slab_state = UP;
#endif
	for (call = slablab_initcalls_start; call < slablab_initcalls_end; call++)
		initcall_from_entry(call)();
	slablab_made(NULL);
	return 0;
}

u64 slablab_set_online(u32 cpu, u32 online)
{
	/* Arrays of slablab_machine are gone by now. */
	struct cpumask *of_node = node_to_cpumask_map[per_cpu(numa_node, cpu)];

	slablab_set_clock();
	if (online == cpumask_test_cpu(cpu, &__cpu_online_mask))
		return 0;
	if (online) {
#ifdef SLABLAB_SLAB
		slablab_cpu_coming(cpu);
#endif
		cpumask_set_cpu(cpu, &__cpu_online_mask);
		cpumask_set_cpu(cpu, of_node);
		atomic_inc(&__num_online_cpus);
	} else {
#ifdef SLABLAB_SLAB
		/* This step is of CPUs that still run, and the next of those that are gone. */
		slablab_run_steps(cpu, 0);
#endif
		cpumask_clear_cpu(cpu, &__cpu_online_mask);
		cpumask_clear_cpu(cpu, of_node);
		atomic_dec(&__num_online_cpus);
#ifdef SLABLAB_SLAB
		slablab_cpu_gone(cpu);
#endif
	}
	return 0;
}
