//! Servers of a cluster.
use crate::error::{c_text, c_texts, check, string_of, Result};
use crate::low;
use std::ptr::{null, null_mut};
use std::time::Duration;

/// Empties a container of state on every task of a cluster, as [`crate::Session::reset`] does, and returns the number of objects it held.
/// target: the address of any task. container "": `localhost`, that of sessions which name none. timeout: within which tasks must answer;
/// zero: five seconds. options: as of a session, such as "insecure=true". If a task does not answer, the error names it, all others have
/// emptied theirs, and the call may be repeated.
pub fn reset_cluster(target: &str, container: &str, timeout: Duration, options: &[&str]) -> Result<u64> {
    let target = format!("target={}", target);
    let all: Vec<&str> = std::iter::once(target.as_str()).chain(options.iter().copied()).collect();
    let ((_texts, all), container) = (c_texts(&all)?, c_text(container)?);
    let (limit, mut count) = (timeout.as_nanos().min(i64::MAX as u128) as i64, 0);
    check(unsafe { low::tw_cluster_reset(null_mut(), all.as_ptr(), all.len() as u32, container.as_ptr(), limit, &mut count) })?;
    Ok(count)
}

/// One task of a cluster in this process. Any thread may use it.
pub struct Server(*mut low::tw_server);

// SAFETY: server.h: any thread.
unsafe impl Send for Server {}
unsafe impl Sync for Server {}

impl Drop for Server {
    fn drop(&mut self) {
        unsafe { low::tw_server_destroy(self.0) }
    }
}

impl Server {
    /// Makes a server for a task of a cluster: JSON such as {"worker": ["unix:w0"]}. job "": the JSON's task. options: "key=value".
    pub fn new(cluster: &str, job: &str, task: u32, options: &[&str]) -> Result<Server> {
        let (cluster, c_job) = (c_text(cluster)?, c_text(job)?);
        let (_texts, options) = c_texts(options)?;
        let job = if job.is_empty() { null() } else { c_job.as_ptr() };
        let mut object = null_mut();
        check(unsafe { low::tw_server_create(null_mut(), cluster.as_ptr(), job, task, options.as_ptr(), options.len() as u32, &mut object) })?;
        Ok(Server(object))
    }
    /// Listens and serves until `stop`.
    pub fn start(&self) -> Result<()> {
        check(unsafe { low::tw_server_start(self.0) })
    }
    /// Ends the steps that run here and stops listening.
    pub fn stop(&self) -> Result<()> {
        check(unsafe { low::tw_server_stop(self.0) })
    }
    /// Waits until the server is stopped; zero: without limit.
    pub fn join(&self, limit: Duration) -> Result<()> {
        check(unsafe { low::tw_server_join(self.0, limit.as_nanos().min(i64::MAX as u128) as i64) })
    }
    /// The address at which the server listens.
    pub fn address(&self) -> Result<String> {
        let mut out = null_mut();
        check(unsafe { low::tw_server_address(self.0, &mut out) })?;
        Ok(string_of(out))
    }
}
