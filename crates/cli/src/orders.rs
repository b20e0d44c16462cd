//! `slablab orders`: what order rules say about sizes, and which sizes two of them treat differently.

use crate::input::command_line;
use crate::outcome::{Done, Failure};
use crate::output::{Format, OutputArgs};
use slablab_doctor::orders::{CPUS_MOST, Question, Sizes, classes, machines};
use slablab_doctor::output::orders_answer;
use slablab_doctor::state::page_size;
use slablab_slabs::order::{COSTLY_ORDER, MAX_ORDER, OrderRule};

/// Lists slab orders by size.
#[derive(clap::Args)]
#[command(after_help = after_help())]
pub(crate) struct Args {
    /// Order rule, by a name of the list below
    #[arg(long, value_name = "RULE", value_parser = rule)]
    policy: OrderRule,
    /// List only the sizes for which this other rule chooses another order
    #[arg(long, value_name = "RULE", value_parser = rule)]
    against: Option<OrderRule>,
    /// Page sizes, for example 4K or 65536; with several page sizes or CPU counts the sizes are counted, not
    /// listed
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', value_parser = page_size, default_value = "4K,16K,64K")]
    page_size: Vec<u64>,
    /// CPUs that the kernel counts at cache creation; `all`: one number for each class that the rules
    /// distinguish, to 4096
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = cpus, default_value = "all")]
    cpus: Vec<Cpus>,
    /// Smallest order, as the boot parameter slub_min_order sets it
    #[arg(long, value_name = "ORDER", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=MAX_ORDER as i64))]
    min_order: u8,
    /// Largest order, as the boot parameter slub_max_order sets it
    #[arg(long, value_name = "ORDER", default_value_t = COSTLY_ORDER, value_parser = clap::value_parser!(u8).range(..=MAX_ORDER as i64))]
    max_order: u8,
    /// Wanted number of objects per slab (slub_min_objects); 0: the rule derives it from the CPUs
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=32767))]
    min_objects: u32,
    /// Object sizes in bytes; default: every multiple of 8 that fits in a slab of --max-order
    #[arg(long, value_name = "FROM..TO[:STEP]", value_parser = sizes)]
    sizes: Option<Sizes>,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    out: OutputArgs<Format>,
}

#[derive(Clone, Copy, Debug)]
enum Cpus {
    All,
    Count(u32),
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    args.out.check([])?;
    let cpus = args.cpus.iter().flat_map(|cpus| match cpus {
        Cpus::All => classes().collect(),
        Cpus::Count(count) => vec![*count],
    });
    let question = Question {
        rule: args.policy,
        against: args.against,
        page_sizes: args.page_size,
        cpus: cpus.collect(),
        min_order: args.min_order,
        max_order: args.max_order,
        min_objects: args.min_objects,
        sizes: args.sizes,
    };
    if question.min_order > question.max_order {
        let (least, most) = (question.min_order, question.max_order);
        return Err(format!("--min-order {least}: expected at most --max-order, which is {most}").into());
    }
    let answer = orders_answer(&question, &machines(&question));
    args.out.answer(&answer, &command_line(), args.wide)?;
    Ok(Done::Complete)
}

fn after_help() -> String {
    let rules = OrderRule::ALL.map(|rule| format!("  {:<10} {}\n", rule.name(), rule.whose())).concat();
    format!(
        "Rules:\n{rules}\nExamples:\n  \
         slablab orders --policy patel-v3 --against clamped\n  \
         slablab orders --policy patel-v3 --against clamped --page-size 64K --cpus 16\n  \
         slablab orders --policy single --page-size 4K --cpus 8"
    )
}

fn rule(text: &str) -> Result<OrderRule, String> {
    OrderRule::parse(text).ok_or_else(|| {
        let names = OrderRule::ALL.map(OrderRule::name).join(", ");
        format!("expected one of {names}")
    })
}

fn cpus(text: &str) -> Result<Cpus, String> {
    match text {
        "all" => Ok(Cpus::All),
        _ => text.parse().ok().filter(|count| (1..=1 << 20).contains(count)).map(Cpus::Count).ok_or_else(
            || {
                format!(
                    "expected `all`, which is 1, 2, 4 .. {CPUS_MOST}, or a number of CPUs, found {text:?}"
                )
            },
        ),
    }
}

fn sizes(text: &str) -> Result<Sizes, String> {
    /// A block of the page allocator where pages have 64K.
    const LARGEST: u32 = 64 << 20;
    let (range, step) = text.split_once(':').unwrap_or((text, "8"));
    let (first, last) = range.split_once("..").unwrap_or((range, range));
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| (1..=LARGEST).contains(number));
    let sizes = (|| Some(Sizes { first: number(first)?, last: number(last)?, step: number(step)? }))();
    sizes
        .filter(|sizes| sizes.first <= sizes.last)
        .ok_or_else(|| format!("expected bytes as 8..65536 or 1..4096:1, at most {LARGEST}, found {text:?}"))
}
