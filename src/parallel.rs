//! Work on many targets at the same time, with results in the order of the targets and bounded memory.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::Builder;

/// Results that may wait for an earlier one, per thread: one huge file does not hold the others back, and a slow one
/// does not let results pile up.
const WINDOW: usize = 64;

/// Most threads: systems refuse so many, and no machine has as many processors to spare.
const MOST_JOBS: usize = 1024;

/// Stack of a thread in bytes, that of the standard library: said here, since the environment may say another.
const STACK: usize = 2 << 20;

fn thread() -> Builder {
    Builder::new().stack_size(STACK)
}

/// How many targets are worked on at the same time: what was asked for, otherwise one a processor.
pub fn jobs(asked: Option<usize>) -> usize {
    match asked {
        Some(count) if count > 0 => count.min(MOST_JOBS),
        _ => std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
    }
}

/// Hands every result to `sink` in the order of `items`, whatever the threads do. Items are taken as they come, so
/// that a list may be longer than memory; at most `jobs` × 64 of them are under way or waiting. `sink` ends the
/// work early with [`ControlFlow::Break`]; what is under way is then finished and dropped.
pub fn ordered<I: Send, O: Send, B>(
    jobs: usize,
    items: impl Iterator<Item = I> + Send,
    work: impl Fn(I) -> O + Sync,
    mut sink: impl FnMut(O) -> ControlFlow<B>,
) -> ControlFlow<B> {
    if jobs < 2 {
        for item in items {
            sink(work(item))?;
        }
        return ControlFlow::Continue(());
    }
    let source = Mutex::new((0usize, items.fuse()));
    let handed = Mutex::new(0usize);
    let room = Condvar::new();
    let stopped = AtomicBool::new(false);
    let (send, receive) = mpsc::channel::<(usize, O)>();
    let worker = |send: mpsc::Sender<(usize, O)>| {
        loop {
            let next = {
                let mut source = lock(&source);
                let mut done = lock(&handed);
                while source.0 >= done.saturating_add(jobs.saturating_mul(WINDOW))
                    && !stopped.load(Ordering::Relaxed)
                {
                    done = room.wait(done).unwrap_or_else(PoisonError::into_inner);
                }
                // Reading on may block, for example on a pipe: results must flow meanwhile.
                drop(done);
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                source.1.next().map(|item| {
                    source.0 += 1;
                    (source.0 - 1, item)
                })
            };
            let Some((index, item)) = next else { return };
            if send.send((index, work(item))).is_err() {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        let mut running = 0usize;
        for _ in 0..jobs {
            let send = send.clone();
            // Where the system gives no more threads, those that run do the work.
            let spawned = thread().spawn_scoped(scope, || worker(send));
            if spawned.is_err() {
                break;
            }
            running += 1;
        }
        drop(send);
        if running == 0 {
            loop {
                let next = lock(&source).1.next();
                let Some(item) = next else { return ControlFlow::Continue(()) };
                sink(work(item))?;
            }
        }
        let mut waiting = BTreeMap::new();
        let mut wanted = 0;
        for (index, result) in receive {
            waiting.insert(index, result);
            while let Some(result) = waiting.remove(&wanted) {
                let flow = sink(result);
                wanted += 1;
                *lock(&handed) = wanted;
                if flow.is_break() {
                    stopped.store(true, Ordering::Relaxed);
                }
                room.notify_all();
                flow?;
            }
        }
        ControlFlow::Continue(())
    })
}

/// Works on the pieces of one thing with as many threads as given, the caller's own among them, and returns the results in
/// the order of the pieces. Each thread makes itself a `room` to work in. Where no more threads can be had, the caller
/// does all the work.
pub fn pieces<I: Sync, R, O: Send>(
    workers: usize,
    pieces: &[I],
    room: impl Fn() -> R + Sync,
    work: impl Fn(&mut R, &I) -> O + Sync,
) -> Vec<O> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut room = room();
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(index) else { return done };
            done.push((index, work(&mut room, piece)));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let start = |_| thread().spawn_scoped(scope, take).ok();
        let others: Vec<_> = (1..workers.min(pieces.len())).map_while(start).collect();
        let mut done = take();
        for other in others {
            done.append(&mut other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Does two things, at the same time if there may be two threads and one more can be had.
pub fn both<A: Send, B>(workers: usize, aside: impl Fn() -> A + Sync, here: impl FnOnce() -> B) -> (A, B) {
    if workers < 2 {
        return (aside(), here());
    }
    std::thread::scope(|scope| {
        let thread = thread().spawn_scoped(scope, &aside);
        let here = here();
        let aside = match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => aside(),
        };
        (aside, here)
    })
}

/// Most threads that work on one target: each has buffers of its own, and what cannot be shared out bounds the gain.
const MOST_WORKERS: usize = 8;

/// How many threads may work on one target while no other is worked on.
pub fn workers(jobs: usize) -> usize {
    jobs.clamp(1, MOST_WORKERS)
}

/// A lock that a panic elsewhere does not take away.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squares(jobs: usize, count: usize) -> Vec<usize> {
        let mut seen = Vec::new();
        let flow: ControlFlow<()> = ordered(
            jobs,
            0..count,
            |n| {
                if n % 7 == 0 {
                    std::thread::sleep(std::time::Duration::from_micros(200));
                }
                n * n
            },
            |n| {
                seen.push(n);
                ControlFlow::Continue(())
            },
        );
        assert!(flow.is_continue());
        seen
    }

    #[test]
    fn results_come_in_order_whatever_the_threads_do() {
        let expected: Vec<usize> = (0..1000).map(|n| n * n).collect();
        for jobs in [1, 2, 3, 16] {
            assert_eq!(squares(jobs, 1000), expected, "{jobs} jobs");
        }
        assert!(squares(4, 0).is_empty());
    }

    #[test]
    fn a_slow_result_does_not_let_the_others_pile_up() {
        let taken = AtomicUsize::new(0);
        let seen = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        let flow: ControlFlow<()> = ordered(
            2,
            (0..2000).inspect(|_| {
                let ahead = taken.fetch_add(1, Ordering::SeqCst) + 1 - seen.load(Ordering::SeqCst);
                most.fetch_max(ahead, Ordering::SeqCst);
            }),
            |n| {
                if n == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
            },
            |()| {
                seen.fetch_add(1, Ordering::SeqCst);
                ControlFlow::Continue(())
            },
        );
        assert!(flow.is_continue());
        assert_eq!(seen.load(Ordering::SeqCst), 2000);
        let most = most.load(Ordering::SeqCst);
        assert!(most <= 2 * WINDOW + 2, "{most} under way");
    }

    #[test]
    fn pieces_keep_their_order_and_each_thread_its_room() {
        let items: Vec<usize> = (0..1000).collect();
        for workers in [0, 1, 2, 5] {
            let rooms = AtomicUsize::new(0);
            let room = || rooms.fetch_add(1, Ordering::SeqCst);
            let tripled = pieces(workers, &items, room, |room, item| (*room, item * 3));
            assert!(tripled.iter().map(|(_, item)| *item).eq((0..1000).map(|item| item * 3)));
            assert!(tripled.iter().all(|(room, _)| *room < workers.max(1)));
            assert_eq!(rooms.load(Ordering::SeqCst), workers.max(1));
        }
        assert!(pieces(4, &[] as &[u8], || (), |(), _| ()).is_empty());
    }

    #[test]
    fn both_are_done_whatever_the_threads() {
        for workers in [0, 1, 2] {
            assert_eq!(both(workers, || 1, || 2), (1, 2));
        }
    }

    #[test]
    fn an_early_end_leaves_an_endless_list() {
        let mut last = 0;
        let flow = ordered(
            3,
            0usize..,
            |n| n,
            |n| {
                last = n;
                if n == 100 { ControlFlow::Break("enough") } else { ControlFlow::Continue(()) }
            },
        );
        assert_eq!((flow, last), (ControlFlow::Break("enough"), 100));
    }
}
