pub(crate) mod costs;
mod plan;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;

use self::costs::Costs;
use self::plan::{Load, Nodes, plan};

const MEASURED: &str = include_str!("../model.toml");

/// `loadtest model`.
#[derive(Debug, Args)]
pub(crate) struct Model {
    /// File of costs from `loadtest cost --out` [default: the costs built into this program].
    #[arg(long)]
    costs: Option<PathBuf>,
    #[command(flatten)]
    load: Load,
}

pub(crate) fn run(arguments: &Model) -> anyhow::Result<String> {
    let costs = match &arguments.costs {
        Some(path) => Costs::read(path)?,
        None => Costs::parse(MEASURED)?,
    };
    let load = &arguments.load;
    for (name, value) in [
        ("sessions", load.sessions),
        ("lifetime", load.lifetime),
        ("stream-lifetime", load.stream_lifetime),
        ("keep-alive", load.keep_alive),
        ("cores", load.cores),
        ("use-of", load.use_of),
        ("sessions-per-node", load.sessions_per_node),
        ("streams-per-edge", load.streams_per_edge),
    ] {
        anyhow::ensure!(
            value > 0.0,
            "--{name} must be greater than zero, not {value}"
        );
    }
    for (name, value) in [
        ("streams", load.streams),
        ("journaled", load.journaled),
        ("use-of", load.use_of),
    ] {
        anyhow::ensure!(
            (0.0..=1.0).contains(&value),
            "--{name} is a share: between 0 and 1, not {value}"
        );
    }
    anyhow::ensure!(
        load.memory * load.use_of > 0.2,
        "--memory times --use-of must leave more than 0.2 GiB: a process by itself takes some of it"
    );
    Ok(shown(load, &costs))
}

fn shown(load: &Load, costs: &Costs) -> String {
    let plan = plan(load, costs);
    let each = &plan.rates.each;
    let mut out = format!(
        "{:.0} sessions, {:.0} with an open stream; a second: {:.0} calls, {:.0} of them journaled, {:.0} events, \
         {:.0} modern calls, {:.0} sessions opened, {:.0} streams opened, {:.0} keep-alives\n\n\
         role           nodes  because of    cores used  memory GiB\n",
        load.sessions,
        plan.rates.open_streams,
        each.legacy + each.journaled,
        each.journaled,
        each.event,
        each.modern,
        each.open,
        each.stream,
        each.keep_alive
    );
    let mut row = |name: &str, nodes: &Nodes| {
        let _ = writeln!(
            out,
            "{name:13}  {:5.0}  {:12}  {:10.1}  {:10.1}",
            nodes.count, nodes.because, nodes.cores, nodes.memory_gib
        );
    };
    row("edges", &plan.edges);
    row("session nodes", &plan.session_nodes);
    row("workers", &plan.workers);
    row("Redis shards", &plan.shards);
    let mesh = &plan.mesh;
    let _ = write!(
        out,
        "\nRedis: {:.0} commands a second for clients, {:.0} for leases and announcements; lists of nodes: {:.0} entries \
         a second, {:.1} % of one shard's thread\n\
         links: {:.0} in all, {:.0} at one session node",
        plan.redis_commands,
        mesh.beats,
        mesh.listed,
        mesh.listing_share * 100.0,
        mesh.links,
        mesh.links_of_one
    );
    if mesh.listing_share > 0.1 {
        let _ = write!(
            out,
            "\nthe list of nodes takes more than a tenth of the shard that holds it: make cells (docs/scaling.md)"
        );
    }
    out
}
