use std::net::SocketAddr;

use shoal_ports::{ClusterSettings, ClusterTls};
use shoal_rpc::TlsFiles;

/// The address that serves other machines without TLS.
pub(super) fn plaintext_to_others(cluster: &ClusterSettings) -> Option<SocketAddr> {
    let address = (cluster.listen).filter(|address| !address.ip().is_loopback())?;
    // Another rule reports an incomplete `cluster.tls`.
    matches!(files(&cluster.tls), Ok(None)).then_some(address)
}

/// `None` if TLS is off.
///
/// # Errors
///
/// The setting that is missing or needs another, and what to do.
pub(crate) fn files(tls: &ClusterTls) -> Result<Option<TlsFiles>, (&'static str, String)> {
    let files = [
        ("cluster.tls.certificate", &tls.certificate),
        ("cluster.tls.key", &tls.key),
        ("cluster.tls.authority", &tls.authority),
    ];
    let (Some(certificate), Some(key), Some(authority)) =
        (&tls.certificate, &tls.key, &tls.authority)
    else {
        let given = files.iter().any(|(_, file)| file.is_some());
        let missing = files.iter().find(|(_, file)| file.is_none());
        return match missing {
            Some((setting, _)) if given => Err((
                setting,
                "is not set: TLS between processes needs certificate, key and authority".to_owned(),
            )),
            _ if tls.allow_plaintext => Err((
                "cluster.tls.allow_plaintext",
                "without certificate, key and authority there is nothing but plaintext".to_owned(),
            )),
            _ => Ok(None),
        };
    };
    let empty = files.iter().find(|(_, file)| {
        file.as_ref()
            .is_some_and(|path| path.as_os_str().is_empty())
    });
    if let Some((setting, _)) = empty {
        return Err((setting, "must name a file".to_owned()));
    }
    shoal_rpc::check_name(&tls.name).map_err(|error| ("cluster.tls.name", error.to_string()))?;
    Ok(Some(TlsFiles {
        certificate: certificate.clone(),
        key: key.clone(),
        authority: authority.clone(),
        name: tls.name.clone(),
        allow_plaintext: tls.allow_plaintext,
        for_node: false,
    }))
}
