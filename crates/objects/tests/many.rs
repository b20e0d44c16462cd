//! The largest number of caches, in a process of its own, where no other test needs one.

use slablab_objects::{CreateError, ObjectCache};

#[test]
fn beyond_the_largest_number_of_caches_create_fails() {
    let mut all = Vec::new();
    let refused = loop {
        match ObjectCache::<u64>::new("one of many") {
            Ok(cache) => all.push(cache),
            Err(why) => break why,
        }
        assert!(all.len() < 5000, "no end");
    };
    assert_eq!(refused, CreateError::TooMany);
    assert!(all.len() > 300, "only {} caches", all.len());
    all.iter().for_each(|cache| drop(cache.insert(7).expect("memory")));
    all.truncate(10);
    assert!(ObjectCache::<u64>::new("room again").is_ok());
}
