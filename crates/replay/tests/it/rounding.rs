//! What a recording says of kmalloc's classes, for the doctor.

use slablab_doctor::measure::rounding::Rounding;
use slablab_replay::import::{Input, open};

/// A recording of 40,000 kmallocs of 520 bytes in objects of 1,024, a tenth of them freed.
#[test]
fn rounding() {
    let mut csv = String::from(
        "t_us,cpu,pid,comm,event,ptr_or_pfn,cache,bytes_req,bytes_alloc,order,gfp,node,call_site\n\
         0.0,0,1,sh,kmem_cache_alloc,0xffff888200d04000,names_cache,4000,4096,,GFP_KERNEL,-1,getname+0x24\n",
    );
    let address = |object: u64| 0xffff_8881_0000_0000 + object * 1024;
    for object in 0..40_000 {
        csv += &format!(
            "{}.0,0,1,sh,kmalloc,{:#x},,520,1024,,GFP_KERNEL,-1,f+0x1\n",
            object + 1,
            address(object)
        );
    }
    for object in (0..40_000).step_by(10) {
        csv += &format!("{}.0,0,1,sh,kfree,{:#x},,,,,,,f+0x2\n", 50_000 + object, address(object));
    }
    let path = std::env::temp_dir().join(format!("slablab-rounding-{}.events.csv", std::process::id()));
    std::fs::write(&path, csv).unwrap();
    let reader = open(Input { path: &path, recording: None, formats: None }, &mut |_| {}).unwrap();
    let rounding = Rounding::read(&path, &reader).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        (rounding.objects, rounding.requested, rounding.allocated),
        (36_000, 36_000 * 520, 36_000 * 1024)
    );
    assert_eq!(rounding.bytes(), 36_000 * 504);
}
