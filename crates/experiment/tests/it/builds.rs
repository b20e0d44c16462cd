//! The lines of the mail of February 2009.

use crate::experiment::folder;
use slablab_experiment::output::{Look, experiment_answer};
use slablab_experiment::workload::Sample;
use slablab_experiment::{Change, Experiment, Plan, Results};

/// Default orders of the mail, iterations 3 and 4, as two runs whose means are the mail's numbers.
#[test]
fn an_iteration_has_the_lines_of_the_mail() {
    let path = folder("builds").join("experiment.toml");
    let text = "name = \"builds\"\ntitle = \"two iterations\"\nmachines = [\"stoakley\"]\n\
                engines = [\"slub@2.6.29\"]\nworkload = \"tmpfs-swap\"\nrepeats = 2\n";
    std::fs::write(&path, text).expect("a file can be written");
    let experiment = Experiment::find(&path).expect("an experiment");
    let plan = Plan::new(&experiment, &Change::default()).expect("a plan");
    // In hundredths of a second.
    let build = [[12_749, 9079, 3324, 41_477, 9158, 3401], [14_699, 9107, 3359, 50_573, 9301, 3412]];
    let run = |off: i64, tar: u64| {
        let mut sample = Sample::default();
        for (n, (numbers, total)) in (1..).zip(build.iter().zip([428_i64, 949])) {
            for (name, number) in
                ["build1", "user1", "system1", "build2", "user2", "system2"].iter().zip(numbers)
            {
                let ps = (number + off) as u64 * 10_000_000_000;
                sample.metrics.insert(format!("{name}_{n}_ps"), ps);
            }
            sample.metrics.insert(format!("total_{n}_ps"), (total + off) as u64 * 1_000_000_000_000);
            sample.metrics.insert(format!("tar_{n}"), tar * (n - 1));
        }
        Ok(sample)
    };
    let runs = vec![Some(vec![run(-2, 1), run(2, 0)])];
    let results = Results { experiment, plan, runs, computed: 0, program: "p".into() };
    let lines = "build1 127.49 90.79 33.24\n\
                 build2 414.77 91.58 34.01\n\
                 428 secs for 1 iters, 428 secs per iter\n\
                 build1 146.99 91.07 33.59\n\
                 tar xfj linux-2.6.28.tar.bz2 (in 1 of 2 runs)\n\
                 build2 505.73 93.01 34.12\n\
                 949 secs for 2 iters, 474 secs per iter\n";
    let table = experiment_answer(&results, Look::default()).text(false);
    assert!(table.contains(&format!("slub@2.6.29\n{lines}")), "{table}");
}
