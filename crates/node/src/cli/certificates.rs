use std::path::PathBuf;

use clap::Args;

/// `shoal certificates`
#[derive(Clone, Debug, Args)]
pub struct Certificates {
    /// The DNS name that makes a process a member: cluster.tls.name.
    #[arg(long, value_name = "NAME", default_value = "shoal")]
    pub name: String,
    /// A pool whose workers get a certificate that lets them serve this pool alone. May be repeated.
    #[arg(long = "pool", value_name = "POOL")]
    pub pools: Vec<String>,
    /// Make a certificate for workers that serve any pool, too: PREFIX-any-pool, or the directory any-pool.
    #[arg(long)]
    pub any_pool: bool,
    /// Fill the Secrets of Kubernetes PREFIX-authority, PREFIX-nodes and PREFIX-pool-POOL, in a pod that may.
    #[arg(long, value_name = "PREFIX", conflicts_with = "to")]
    pub secrets: Option<String>,
    /// Where the pod finds its token, its namespace and the API server's authority.
    #[arg(
        long,
        hide = true,
        value_name = "DIRECTORY",
        default_value = "/var/run/secrets/kubernetes.io/serviceaccount"
    )]
    pub service_account: PathBuf,
    /// Where the API server is, as Kubernetes tells every pod.
    #[arg(
        long,
        hide = true,
        value_name = "HOST",
        env = "KUBERNETES_SERVICE_HOST"
    )]
    pub api_host: Option<String>,
    /// Its port.
    #[arg(
        long,
        hide = true,
        value_name = "PORT",
        env = "KUBERNETES_SERVICE_PORT"
    )]
    pub api_port: Option<u16>,
    /// The directory, which must exist: the certificates are in authority, nodes and pool-POOL.
    #[arg(value_name = "DIRECTORY", required_unless_present = "secrets")]
    pub to: Option<PathBuf>,
}
