use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context;
use shoal_testkit::redis::info;
use tokio::net::ToSocketAddrs;

/// Returns how often each command has run since Redis started, without `INFO`, which this program sends.
pub(crate) async fn commands(redis: SocketAddr) -> anyhow::Result<BTreeMap<String, u64>> {
    let stats = info(redis, "commandstats").await?;
    Ok(stats.iter().filter_map(command_count).collect())
}

fn command_count((name, stats): (&String, &String)) -> Option<(String, u64)> {
    let name = name.strip_prefix("cmdstat_")?;
    let (calls, _) = stats.strip_prefix("calls=")?.split_once(',')?;
    (name != "info").then(|| Some((name.to_owned(), calls.parse().ok()?)))?
}

/// Returns the CPU time of Redis since its start.
pub(crate) async fn cpu(redis: SocketAddr) -> anyhow::Result<Duration> {
    let info = info(redis, "cpu").await?;
    let seconds: f64 =
        number::<f64>(&info, "used_cpu_sys")? + number::<f64>(&info, "used_cpu_user")?;
    Ok(Duration::try_from_secs_f64(seconds)?)
}

/// Returns the bytes of the data.
pub(crate) async fn used_memory(redis: impl ToSocketAddrs) -> anyhow::Result<u64> {
    number(&info(redis, "memory").await?, "used_memory")
}

fn number<T: FromStr>(info: &BTreeMap<String, String>, name: &str) -> anyhow::Result<T> {
    let value = info.get(name).and_then(|value| value.parse().ok());
    value.with_context(|| format!("Redis did not say its {name}"))
}

#[cfg(test)]
mod tests {
    use super::command_count;

    #[test]
    fn command_statistics_are_read() {
        let count = |name: &str, stats: &str| command_count((&name.to_owned(), &stats.to_owned()));
        let stats = "calls=12,usec=99,usec_per_call=8.25,rejected_calls=0";
        assert_eq!(
            count("cmdstat_evalsha", stats),
            Some(("evalsha".to_owned(), 12))
        );
        assert_eq!(count("cmdstat_info", stats), None);
        assert_eq!(count("used_memory", "7"), None);
    }
}
