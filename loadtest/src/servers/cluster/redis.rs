//! Each query uses Redis' inline protocol on a new connection.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A Redis server, by its address.
#[derive(Debug, Clone)]
pub(crate) struct Redis(pub(crate) String);

impl Redis {
    /// Returns how often each command has run since Redis started (`INFO commandstats`). Leaves out `INFO` and
    /// `QUIT`, which this program's own queries send.
    pub(crate) fn commands(&self) -> anyhow::Result<Vec<(String, u64)>> {
        let text = self.ask("INFO commandstats")?;
        Ok(text.lines().filter_map(command_count).collect())
    }

    /// Returns the CPU time of Redis since its start.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        cpu(&self.ask("INFO cpu")?).context("Redis did not say what it has taken")
    }

    pub(crate) fn keys(&self, pattern: &str) -> anyhow::Result<Vec<String>> {
        Ok(values(&self.ask(&format!("KEYS {pattern}"))?))
    }

    /// Returns the bytes of the data.
    pub(crate) fn used_memory(&self) -> anyhow::Result<u64> {
        used_memory(&self.ask("INFO memory")?).context("Redis did not say how full it is")
    }

    fn ask(&self, question: &str) -> anyhow::Result<String> {
        let redis = TcpStream::connect(&self.0);
        let mut redis = redis.with_context(|| format!("no answer from Redis at {}", self.0))?;
        redis.set_read_timeout(Some(TIMEOUT))?;
        redis.write_all(format!("{question}\r\nQUIT\r\n").as_bytes())?;
        let mut text = String::new();
        redis.read_to_string(&mut text)?;
        Ok(text)
    }
}

fn command_count(line: &str) -> Option<(String, u64)> {
    let (name, stats) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
    let calls = stats.split(',').next()?.parse().ok()?;
    (name != "info" && name != "quit").then(|| (name.to_owned(), calls))
}

fn number<T: FromStr>(info: &str, name: &str) -> Option<T> {
    let line = info.lines().find_map(|line| line.strip_prefix(name));
    line?.trim().parse().ok()
}

fn used_memory(info: &str) -> Option<u64> {
    number(info, "used_memory:")
}

fn cpu(info: &str) -> Option<Duration> {
    let seconds = |name: &str| number::<f64>(info, name);
    Duration::try_from_secs_f64(seconds("used_cpu_sys:")? + seconds("used_cpu_user:")?).ok()
}

/// The texts must not contain line ends.
fn values(answer: &str) -> Vec<String> {
    let mut lines = answer.lines();
    let mut values = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with('$') {
            values.extend(lines.next().map(str::to_owned));
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{command_count, cpu, used_memory, values};

    #[test]
    fn cpu_time_is_read() {
        let info =
            "# CPU\r\nused_cpu_sys:1.25\r\nused_cpu_user:2.5\r\nused_cpu_sys_children:9.0\r\n";
        assert_eq!(cpu(info), Some(Duration::from_millis(3750)));
        assert_eq!(cpu("-LOADING\r\n"), None);
    }

    #[test]
    fn redis_says_what_it_uses() {
        let info = "# Memory\r\nused_memory:1048576\r\nused_memory_human:1.00M\r\n";
        assert_eq!(used_memory(info), Some(1_048_576));
        assert_eq!(used_memory("-ERR"), None);
    }

    #[test]
    fn command_statistics_are_read() {
        let line = "cmdstat_evalsha:calls=12,usec=99,usec_per_call=8.25,rejected_calls=0";
        assert_eq!(command_count(line), Some(("evalsha".to_owned(), 12)));
        assert_eq!(command_count("cmdstat_info:calls=1,usec=9"), None);
        assert_eq!(command_count("# Commandstats"), None);
    }

    #[test]
    fn an_array_of_texts_is_read() {
        assert_eq!(values("*2\r\n$1\r\na\r\n$2\r\n$b\r\n+OK\r\n"), ["a", "$b"]);
        assert!(values("*0\r\n+OK\r\n").is_empty());
    }
}
