// SPDX-License-Identifier: MIT OR Apache-2.0
/* Locks are the program's: here a call may wait. What runs later, and CPUs that come and go, too. */
#include <linux/cpuhotplug.h>
#include <linux/cpu.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
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
	slablab_locked(lock);
}

void __lockfunc _raw_spin_lock_irq(raw_spinlock_t *lock)
{
	irq_save();
	host_lock(lock, (u64)__builtin_return_address(0));
	slablab_locked(lock);
}

unsigned long __lockfunc _raw_spin_lock_irqsave(raw_spinlock_t *lock)
{
	unsigned long flags;

	flags = irq_save();
	host_lock(lock, (u64)__builtin_return_address(0));
	slablab_locked(lock);
	return flags;
}

void __lockfunc _raw_spin_unlock_irqrestore(raw_spinlock_t *lock, unsigned long flags)
{
	slablab_unlocked(lock);
	host_unlock(lock);
	irq_restore(flags);
}

void __lockfunc _raw_spin_unlock(raw_spinlock_t *lock)
{
	slablab_unlocked(lock);
	host_unlock(lock);
}

void __lockfunc _raw_spin_unlock_irq(raw_spinlock_t *lock)
{
	slablab_unlocked(lock);
	host_unlock(lock);
	irq_restore(X86_EFLAGS_IF);
}

int __lockfunc _raw_spin_trylock(raw_spinlock_t *lock)
{
	if (!host_trylock(lock, (u64)__builtin_return_address(0)))
		return 0;
	slablab_locked(lock);
	return 1;
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

void slablab_on_cpu(u32 cpu, void (*function)(void *), void *argument)
{
	unsigned long here = this_cpu_read(this_cpu_off);

	if (cpu < nr_cpu_ids)
		asm volatile("wrgsbase %0" : : "r"(__per_cpu_offset[cpu]) : "memory");
	function(argument);
	asm volatile("wrgsbase %0" : : "r"(here) : "memory");
}

/* Work runs at once, on the CPU that it was queued for. */
bool queue_work_on(int cpu, struct workqueue_struct *wq, struct work_struct *work)
{
	slablab_on_cpu(cpu, (void (*)(void *))work->func, work);
	return true;
}

/* The program's clock, in the tree's unit. */
void slablab_set_clock(void)
{
	jiffies = host_jiffies() * HZ / 250;
}

/* Work of later runs when the program says so. */
bool queue_delayed_work_on(int cpu, struct workqueue_struct *wq, struct delayed_work *dwork, unsigned long delay)
{
	if (test_and_set_bit(WORK_STRUCT_PENDING_BIT, work_data_bits(&dwork->work)))
		return false;
	dwork->timer.expires = jiffies + delay;
	host_defer(cpu < nr_cpu_ids ? cpu : raw_smp_processor_id(), dwork, delay * (NSEC_PER_SEC / HZ));
	return true;
}

static void run_work(void *work)
{
	((struct work_struct *)work)->func(work);
}

u64 slablab_later(void *work)
{
	struct delayed_work *dwork = work;

	slablab_set_clock();
	/* The program forgets no work that was cancelled: if it is queued again meanwhile, this is too early. */
	if (work_pending(&dwork->work) && time_before(jiffies, dwork->timer.expires)) {
		host_defer(raw_smp_processor_id(), dwork, (dwork->timer.expires - jiffies) * (NSEC_PER_SEC / HZ));
		return 0;
	}
	if (test_and_clear_bit(WORK_STRUCT_PENDING_BIT, work_data_bits(&dwork->work)))
		slablab_run(run_work, &dwork->work);
	return 0;
}

void init_timer_key(struct timer_list *timer, void (*func)(struct timer_list *), unsigned int flags,
		    const char *name, struct lock_class_key *key)
{
}

/* To whole seconds, down if that is near: three jiffies apart for CPUs, so that not all wake at once. */
unsigned long __round_jiffies_relative(unsigned long j, int cpu)
{
	unsigned long skew = cpu * 3, at = jiffies + j + skew, rest = at % HZ;

	at = (rest < HZ / 4 ? at - rest : at - rest + HZ) - skew;
	return time_is_after_jiffies(at) ? at - jiffies : j;
}

unsigned long round_jiffies_relative(unsigned long j)
{
	return __round_jiffies_relative(j, raw_smp_processor_id());
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
	return test_and_clear_bit(WORK_STRUCT_PENDING_BIT, work_data_bits(&dwork->work));
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
#ifdef SLABLAB_SLAB
	if (invoke && startup) {
		u32 cpu;

		for_each_online_cpu(cpu)
			startup(cpu);
	}
#endif
	return 0;
}

void slablab_run_steps(u32 cpu, u32 up)
{
	u32 step;

	for (step = 0; step < step_count; step++) {
		int (*function)(unsigned int) = up ? steps[step].up : steps[step].down;

		if (function)
			function(cpu);
	}
}

u64 slablab_cpu_steps(u32 cpu, u32 up)
{
	/* SLAB's steps of a CPU that goes are made while it still runs: start.c. */
	if (up || !IS_ENABLED(CONFIG_SLAB))
		slablab_run_steps(cpu, up);
	return 0;
}
