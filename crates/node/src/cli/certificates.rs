use std::path::PathBuf;

use clap::Args;

/// `shoal certificates`
#[derive(Clone, Debug, Args)]
pub struct Certificates {
    /// DNS name in the certificates of all members of the cluster. Set cluster.tls.name to the same name.
    #[arg(long, value_name = "NAME", default_value = "shoal")]
    pub name: String,
    /// Make a certificate for the workers of this pool, with which they can serve only this pool. Repeat the flag for
    /// several pools.
    #[arg(long = "pool", value_name = "POOL")]
    pub pools: Vec<String>,
    /// Also make a certificate for workers that may serve any pool, in the directory any-pool or the Secret
    /// PREFIX-any-pool.
    #[arg(long)]
    pub any_pool: bool,
    /// Write the certificates into the existing Kubernetes Secrets PREFIX-authority, PREFIX-nodes and PREFIX-pool-POOL,
    /// instead of a directory. Run this in a pod that has the right to update them.
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
    /// Existing directory for the certificates, which get the subdirectories authority, nodes and pool-POOL.
    #[arg(value_name = "DIRECTORY", required_unless_present = "secrets")]
    pub to: Option<PathBuf>,
}
