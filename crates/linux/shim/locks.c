// SPDX-License-Identifier: MIT OR Apache-2.0
/* Locks are the program's: here a call may wait. What runs later, and CPUs that come and go, too. */
#include <linux/cpuhotplug.h>
#include <linux/cpu.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <asm/processor-flags.h>
#include "host.h"

unsigned long volatile jiffies;

/* Interrupts of a lock: the lock's price has them, so these do not count. */
DECLARE_PER_CPU(unsigned long, slablab_flags);

static unsigned long irq_save(void)
{
	unsigned long flags = this_cpu_read(slablab_flags);

	this_cpu_write(slablab_flags, 0);
	return flags;
}

static void irq_restore(unsigned long flags)
{
	this_cpu_write(slablab_flags, flags);
}

void __lockfunc _raw_spin_lock(raw_spinlock_t *lock)
{
	host_lock(lock, (u64)__builtin_return_address(0));
}

void __lockfunc _raw_spin_lock_irq(raw_spinlock_t *lock)
{
	irq_save();
	host_lock(lock, (u64)__builtin_return_address(0));
}

unsigned long __lockfunc _raw_spin_lock_irqsave(raw_spinlock_t *lock)
{
	unsigned long flags;

	flags = irq_save();
	host_lock(lock, (u64)__builtin_return_address(0));
	return flags;
}

void __lockfunc _raw_spin_unlock_irqrestore(raw_spinlock_t *lock, unsigned long flags)
{
	host_unlock(lock);
	irq_restore(flags);
}

/* Functions where the tree does not make them part of their callers. */
#ifndef _raw_spin_unlock
void __lockfunc _raw_spin_unlock(raw_spinlock_t *lock)
{
	host_unlock(lock);
}
#endif

#ifndef _raw_spin_unlock_irq
void __lockfunc _raw_spin_unlock_irq(raw_spinlock_t *lock)
{
	host_unlock(lock);
	irq_restore(X86_EFLAGS_IF);
}
#endif

int __lockfunc _raw_spin_trylock(raw_spinlock_t *lock)
{
	return host_trylock(lock, (u64)__builtin_return_address(0));
}

/* Mutexes guard the list of caches: the program creates and destroys caches one at a time. */
void mutex_lock(struct mutex *lock)
{
}

int mutex_trylock(struct mutex *lock)
{
	return 1;
}

void mutex_unlock(struct mutex *lock)
{
}

void cpus_read_lock(void)
{
}

void cpus_read_unlock(void)
{
}

void lockdep_assert_cpus_held(void)
{
}

#ifdef CONFIG_PREEMPT_VOLUNTARY
int __cond_resched(void);
int __cond_resched(void)
{
	return 0;
}
#endif

void call_rcu(struct rcu_head *head, rcu_callback_t func)
{
	host_after_grace_period(head, func);
}

void rcu_barrier(void)
{
	host_barrier();
}

void synchronize_rcu(void)
{
	host_barrier();
}

/* Work runs at once, on the CPU that it was queued for. */
static void run_on(int cpu, struct work_struct *work)
{
	unsigned long here = this_cpu_read(this_cpu_off);

	if (cpu < nr_cpu_ids)
		asm volatile("wrgsbase %0" : : "r"(__per_cpu_offset[cpu]) : "memory");
	work->func(work);
	asm volatile("wrgsbase %0" : : "r"(here) : "memory");
}

bool queue_work_on(int cpu, struct workqueue_struct *wq, struct work_struct *work)
{
	run_on(cpu, work);
	return true;
}

bool flush_work(struct work_struct *work)
{
	return true;
}

bool flush_rcu_work(struct rcu_work *rwork)
{
	return true;
}

bool cancel_delayed_work_sync(struct delayed_work *dwork)
{
	return false;
}

struct workqueue_struct *system_wq;

/* A macro since 6.17, in front of a function of another name. */
#ifdef alloc_workqueue
struct workqueue_struct *alloc_workqueue_noprof(const char *fmt, unsigned int flags, int max_active, ...)
#else
struct workqueue_struct *alloc_workqueue(const char *fmt, unsigned int flags, int max_active, ...)
#endif
{
	return (struct workqueue_struct *)slablab_arena(8);
}

/* The functions of CPUs that come and go, in the order in which the tree set them up. */
static struct {
	int (*up)(unsigned int cpu);
	int (*down)(unsigned int cpu);
} steps[16];
static u32 step_count;

int __cpuhp_setup_state(enum cpuhp_state state, const char *name, bool invoke, int (*startup)(unsigned int cpu),
			int (*teardown)(unsigned int cpu), bool multi_instance)
{
	if (step_count == ARRAY_SIZE(steps))
		slablab_end(SLABLAB_PANIC, "slablab: more steps of CPUs than the shim holds", 0);
	steps[step_count].up = startup;
	steps[step_count++].down = teardown;
	return 0;
}

u64 slablab_cpu_steps(u32 cpu, u32 up)
{
	u32 step;

	for (step = 0; step < step_count; step++) {
		int (*function)(unsigned int) = up ? steps[step].up : steps[step].down;

		if (function)
			function(cpu);
	}
	return 0;
}

u64 slablab_call_rcu_function(struct rcu_head *head, rcu_callback_t function)
{
	function(head);
	return 0;
}
