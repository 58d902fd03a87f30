//! Measures the time of a stretch of the program, and its resident memory.

use std::fs;
use std::mem::MaybeUninit;
use std::time::Instant;

/// A stopwatch for wall time, and for the CPU time of all threads.
pub struct Stopwatch {
    wall: Instant,
    cpu: f64,
}

impl Stopwatch {
    pub fn start() -> Self {
        Self { wall: Instant::now(), cpu: processor_seconds() }
    }

    /// Returns the wall and CPU seconds since the start.
    pub fn stop(&self) -> (f64, f64) {
        (self.wall.elapsed().as_secs_f64(), processor_seconds() - self.cpu)
    }
}

fn processor_seconds() -> f64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` points to memory of the size that getrusage(2) fills.
    let usage = unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()), 0);
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Returns a field of /proc/self/status in bytes: VmRSS is now, VmHWM the highest so far.
pub fn resident(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("/proc/self/status is readable");
    let line = status.lines().find(|line| line.starts_with(field)).expect("the field exists");
    let kilobytes = line.split_whitespace().nth(1).expect("the line has a number");
    kilobytes.parse::<u64>().expect("the number is one") * 1024
}

/// Returns free memory of the allocator to the system. A program would not do this: memory that
/// the allocator could release counts as released.
pub fn release_memory() {
    // SAFETY: malloc_trim(3) has no preconditions.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
