//! Issuers of Microsoft Entra ID, whose tokens name their tenant.

use super::resolved::{Tenancy, Tenant};

/// Microsoft's placeholder for a tenant.
const TENANT: &str = "{tenantid}";
/// Names for several tenants in metadata URLs. Tokens do not contain them.
const SEVERAL: [&str; 3] = [TENANT, "common", "organizations"];
const CONSUMERS: &str = "9188040d-6c67-4c5b-b112-36a304b66dad";

/// Hosts whose issuers end with `/v2.0`, each with the host of the issuers of version 1.0.
const HOSTS: [(&str, &str); 3] = [
    ("login.microsoftonline.com", "sts.windows.net"),
    ("login.microsoftonline.us", "sts.windows.net"),
    ("login.partner.microsoftonline.cn", "sts.chinacloudapi.cn"),
];

struct EntraUrlParts<'a> {
    before: &'a str,
    host: &'a str,
    tenant: &'a str,
    after: &'a str,
}

impl<'a> EntraUrlParts<'a> {
    fn of(issuer: &'a str) -> Option<Self> {
        let host = issuer.find("://")? + 3;
        let tenant = host + issuer[host..].find('/')? + 1;
        let after = issuer[tenant..]
            .find('/')
            .map_or(issuer.len(), |at| tenant + at);
        Some(Self {
            before: &issuer[..tenant],
            host: &issuer[host..tenant - 1],
            tenant: &issuer[tenant..after],
            after: &issuer[after..],
        })
    }

    fn with(&self, tenant: &str) -> String {
        format!("{}{tenant}{}", self.before, self.after)
    }

    fn other_version(&self) -> String {
        let host = self.host.to_ascii_lowercase();
        match HOSTS.iter().find(|(_, old)| *old == host) {
            Some((new, _)) => format!("https://{new}/{TENANT}/v2.0"),
            None => {
                let beside = HOSTS.iter().find(|(new, _)| *new == host);
                let (_, old) = beside.unwrap_or(&HOSTS[0]);
                format!("https://{old}/{TENANT}/")
            }
        }
    }

    fn is_of_version_1(&self) -> bool {
        HOSTS
            .iter()
            .any(|(_, old)| self.host.eq_ignore_ascii_case(old))
    }
}

pub(super) fn names_several_tenants(issuer: &str) -> bool {
    let microsoft = |host: &str| {
        let mut hosts = HOSTS.iter().flat_map(|(new, old)| [new, old]);
        hosts.any(|known| host.eq_ignore_ascii_case(known))
    };
    issuer.contains(TENANT)
        || EntraUrlParts::of(issuer)
            .is_some_and(|parts| microsoft(parts.host) && SEVERAL.contains(&parts.tenant))
}

/// `aliases` are other values of `iss`, in which the placeholder stands for the tenant.
pub(super) fn tenancy(
    issuer: &str,
    tenants: &[String],
    aliases: &[String],
) -> Result<Tenancy, String> {
    let form = "https://login.microsoftonline.com/TENANT/v2.0";
    let parts = EntraUrlParts::of(issuer).ok_or_else(|| format!("an issuer of Entra is {form}"))?;
    if !parts.is_of_version_1() && parts.after.trim_end_matches('/') != "/v2.0" {
        return Err(format!(
            "no token names such an issuer: it is {form}, or https://sts.windows.net/TENANT/ for tokens of version 1.0"
        ));
    }
    let of = |tenant: &str| {
        let tenant = tenant.to_ascii_lowercase();
        let others = aliases.iter().cloned().chain([parts.other_version()]);
        Tenant {
            name: parts.with(&tenant),
            aliases: others.map(|alias| alias.replace(TENANT, &tenant)).collect(),
        }
    };
    if is_id(parts.tenant) {
        if !tenants.is_empty() {
            return Err(
                "tenants is for an issuer of several: write `common` or `organizations` in place of the tenant".to_owned(),
            );
        }
        let tenant = of(parts.tenant);
        return Ok(Tenancy {
            server: tenant.name.clone(),
            described_as: tenant.name.clone(),
            tenants: vec![tenant],
        });
    }
    if parts.tenant == "consumers" {
        return Err(format!(
            "tokens name the tenant of personal accounts by its id: write {CONSUMERS} in place of `consumers`"
        ));
    }
    if !SEVERAL.contains(&parts.tenant) {
        return Err(format!(
            "tokens name the tenant by its id: write that (Entra admin center, Overview, Tenant ID) in place of {:?}",
            parts.tenant
        ));
    }
    if tenants.is_empty() {
        return Err(format!(
            "it is of every tenant of Entra: list in tenants the ids of those whose tokens are taken, or write the id of yours in \
             place of {:?}",
            parts.tenant
        ));
    }
    if let Some(no_id) = tenants.iter().find(|tenant| !is_id(tenant)) {
        return Err(format!("tenants has {no_id:?}, which is not a tenant ID"));
    }
    let asked = match parts.tenant {
        TENANT => "common",
        named => named,
    };
    Ok(Tenancy {
        server: parts.with(asked),
        described_as: parts.with(TENANT),
        tenants: tenants.iter().map(|tenant| of(tenant)).collect(),
    })
}

fn is_id(text: &str) -> bool {
    let mut parts = text.split('-');
    let fits = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit())
    };
    [8, 4, 4, 4, 12]
        .into_iter()
        .all(|length| parts.next().is_some_and(|part| fits(part, length)))
        && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::tenancy;
    use crate::config::resolved::Tenancy;

    const ID: &str = "72f988bf-86f1-41af-91ab-2d7cd011db47";
    const OTHER: &str = "fa15d692-e9c7-4460-a743-29f295222229";

    fn read(issuer: &str, tenants: &[&str]) -> Result<Tenancy, String> {
        let tenants: Vec<String> = tenants.iter().map(|id| (*id).to_owned()).collect();
        tenancy(issuer, &tenants, &[])
    }

    #[test]
    fn tokens_of_both_versions_are_of_one_tenant() {
        for (host, old) in super::HOSTS {
            let new = format!("https://{host}/{ID}/v2.0");
            let read_new = read(&new, &[]).unwrap();
            assert_eq!(read_new.server, new);
            assert_eq!(
                read_new.tenants[0].aliases,
                [format!("https://{old}/{ID}/")]
            );
        }
        let old = read(&format!("https://sts.windows.net/{ID}/"), &[]).unwrap();
        let new = format!("https://login.microsoftonline.com/{ID}/v2.0");
        assert_eq!(old.tenants[0].aliases, [new]);
    }

    #[test]
    fn several_tenants_are_listed() {
        for named in ["common", "organizations", "{tenantid}"] {
            let issuer = format!("https://login.microsoftonline.com/{named}/v2.0");
            let several = read(&issuer, &[ID, &OTHER.to_uppercase()]).unwrap();
            assert!(!several.server.contains('{'));
            assert_eq!(
                several.described_as,
                "https://login.microsoftonline.com/{tenantid}/v2.0"
            );
            let names: Vec<&str> = several
                .tenants
                .iter()
                .map(|one| one.name.as_str())
                .collect();
            let due = [ID, OTHER].map(|id| format!("https://login.microsoftonline.com/{id}/v2.0"));
            assert_eq!(names, due);
        }
    }

    #[test]
    fn an_issuer_that_no_token_names_is_refused() {
        for (issuer, tenants, due) in [
            (
                "https://login.microsoftonline.com/common/v2.0",
                &[][..],
                "list in tenants",
            ),
            (
                "https://login.microsoftonline.com/common/v2.0",
                &["contoso.com"],
                "not a tenant ID",
            ),
            (
                "https://login.microsoftonline.com/consumers/v2.0",
                &[],
                super::CONSUMERS,
            ),
            (
                "https://login.microsoftonline.com/contoso.onmicrosoft.com/v2.0",
                &[],
                "Tenant ID",
            ),
            (
                "https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47",
                &[],
                "TENANT/v2.0",
            ),
            (
                "https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0",
                &[ID],
                "of several",
            ),
            ("https://login.microsoftonline.com", &[], "TENANT/v2.0"),
        ] {
            let why = read(issuer, tenants).unwrap_err();
            assert!(why.contains(due), "{issuer}: {why}");
        }
    }
}
