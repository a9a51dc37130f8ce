//! What is outside of the analysis: the files in which findings go, and the modules of the program.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use crate::owner::Place;

unsafe extern "C" {
    fn dladdr(address: *const c_void, info: *mut Info) -> c_int;
}

#[repr(C)]
struct Info {
    file: *const c_char,
    base: *mut c_void,
    symbol: *const c_char,
    at: *mut c_void,
}

/// Where findings go, and the names of modules.
#[derive(Default)]
pub(super) struct Outside {
    directory: Option<PathBuf>,
    /// Where they go if the first place is full.
    elsewhere: Option<PathBuf>,
    /// What the names of files end with: nothing, or the number of a job that another one has spawned.
    job: String,
    pub(super) rank: u32,
    names: HashMap<usize, Arc<str>>,
    /// The places that were looked up. Modules with calls of MPI stay loaded.
    places: HashMap<u64, Place>,
    /// The program counters of statements that were found to race.
    pub(super) raced: Vec<u64>,
}

impl Outside {
    /// Of a rank, as its environment says; `job` is 0, or the number of a job that another one has spawned.
    pub(super) fn new(rank: u32, job: u64) -> Outside {
        let path = |variable| std::env::var_os(variable).map(PathBuf::from);
        Outside {
            directory: path("SELVEDGE_SPMD_DIR"),
            elsewhere: path("SELVEDGE_SPMD_ELSEWHERE"),
            job: if job == 0 { String::new() } else { format!("-of-{job}") },
            rank,
            ..Outside::default()
        }
    }

    /// Writes a line about the whole job.
    pub(super) fn tell_of_job(&self, line: &str) {
        self.append(&format!("job{}.jsonl", self.job), line);
    }

    /// Writes a line about this rank.
    pub(super) fn tell_of_rank(&self, line: &str) {
        self.append(&format!("rank{}-{}.jsonl", self.job, self.rank), line);
    }

    fn append(&self, file: &str, line: &str) {
        let write = |directory: &PathBuf| {
            let path = directory.join(file);
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
            file.write_all(format!("{line}\n").as_bytes())
        };
        let Some(directory) = &self.directory else { return };
        let Err(error) = write(directory) else { return };
        if self.elsewhere.as_ref().is_none_or(|elsewhere| write(elsewhere).is_err()) {
            let rank = self.rank;
            eprintln!(
                "selvedge: rank {rank} cannot tell what it has found: {}: {error}",
                directory.display()
            );
        }
    }

    pub(super) fn place(&mut self, address: u64) -> Place {
        if let Some(place) = self.places.get(&address) {
            return place.clone();
        }
        let place = self.look_up(address);
        if !place.module.is_empty() {
            self.places.insert(address, place.clone());
        }
        place
    }

    /// A statement was found to race. Its program counter was looked up to tell its place.
    pub(super) fn race(&mut self, place: &Place) {
        let of_place = self.places.iter().filter(|(_, known)| *known == place);
        self.raced.extend(of_place.map(|(pc, _)| pc));
    }

    fn look_up(&mut self, address: u64) -> Place {
        let mut info = Info {
            file: std::ptr::null(),
            base: std::ptr::null_mut(),
            symbol: std::ptr::null(),
            at: std::ptr::null_mut(),
        };
        // SAFETY: the loader looks the address up and does not use it; the result is ours.
        let found = unsafe { dladdr(address as *const c_void, &raw mut info) } != 0;
        if !found || info.file.is_null() {
            return Place { module: "".into(), offset: address };
        }
        let base = info.base as usize;
        let name = self.names.entry(base).or_insert_with(|| {
            // SAFETY: the loader's name of a module, which is loaded.
            let file = unsafe { CStr::from_ptr(info.file) }.to_string_lossy().into_owned();
            if file.starts_with('/') {
                return file.into();
            }
            // The program itself, by the name that it was called by.
            std::env::current_exe().map_or(file, |p| p.to_string_lossy().into_owned()).into()
        });
        Place { module: name.clone(), offset: address.wrapping_sub(base as u64) }
    }
}
