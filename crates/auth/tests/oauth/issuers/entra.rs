use serde_json::{Value, json};
use shoal_auth::config::{Issuer, IssuerKind};
use shoal_ports::TokenFault;

use super::{Fake, SECOND, Trusting, with};

const TENANT: &str = "72f988bf-86f1-41af-91ab-2d7cd011db47";
const OTHER: &str = "fa15d692-e9c7-4460-a743-29f295222229";
const CONSUMERS: &str = "9188040d-6c67-4c5b-b112-36a304b66dad";
const API: &str = "6e74172b-be56-4843-9ff4-e66a39bb12e3";

async fn fake(tenant: &str) -> Fake {
    let path = format!("/{tenant}/v2.0");
    let metadata = format!("{path}/.well-known/openid-configuration");
    Fake::at(&path, &metadata).await
}

fn trusting(fake: &Fake) -> Issuer {
    Issuer {
        audience: vec![API.to_owned(), format!("api://{API}")],
        ..fake.settings(IssuerKind::Entra)
    }
}

fn user() -> Value {
    json!({
        "aud": API, "azp": "11111111-0000-0000-0000-000000000000", "azpacr": "0", "aio": "AXQAi", "name": "Abe Lincoln",
        "oid": "690222be-ff1a-4d56-abd1-7e4f7d38e474", "preferred_username": "abeli@microsoft.com", "rh": "I",
        "scp": "access_as_user mcp", "sub": "HKZpfaHyWadeOouYlitjrI", "tid": TENANT, "uti": "fqiBqXLPj0eQa82S", "ver": "2.0",
    })
}

fn user_1() -> Value {
    let old = json!({
        "aud": format!("api://{API}"), "iss": format!("https://sts.windows.net/{TENANT}/"), "azp": null, "azpacr": null,
        "appid": "11111111-0000-0000-0000-000000000000", "appidacr": "0", "acr": "1", "amr": ["pwd"], "preferred_username": null,
        "unique_name": "abeli@microsoft.com", "ver": "1.0",
    });
    with(&user(), old)
}

#[tokio::test]
async fn tokens_of_both_versions_of_users_and_of_applications_are_taken() {
    let fake = fake(TENANT).await;
    let trusting = Trusting::new(trusting(&fake)).await;
    let name = "HKZpfaHyWadeOouYlitjrI";
    assert_eq!(trusting.principal(&fake.token(user())).await, name);
    let header = json!({ "typ": "JWT", "alg": "RS256", "kid": "first", "x5t": "first" });
    assert_eq!(
        trusting.principal(&fake.signed(&header, user_1())).await,
        name
    );
    let application = json!({
        "scp": null, "roles": ["mcp"], "idtyp": "app", "name": null, "preferred_username": null, "azpacr": "1",
        "sub": "a1b2", "oid": "a1b2",
    });
    let application = fake.token(with(&user(), application));
    assert_eq!(trusting.principal(&application).await, "a1b2");
    assert_eq!(trusting.servers(), json!([fake.issuer]));
}

#[tokio::test]
async fn tokens_for_another_api_or_of_another_tenant_are_refused() {
    let fake = fake(TENANT).await;
    let trusting = Trusting::new(trusting(&fake)).await;
    let graph = json!({ "aud": "00000003-0000-0000-c000-000000000000" });
    trusting
        .refuses(&fake.token(with(&user(), graph)), TokenFault::Audience)
        .await;
    for other in [
        fake.issuer.replace(TENANT, OTHER),
        format!("https://sts.windows.net/{OTHER}/"),
        format!("https://sts.windows.net/{TENANT}"),
        fake.issuer.replace(TENANT, "{tenantid}"),
    ] {
        let token = fake.token(with(&user(), json!({ "iss": other })));
        trusting.refuses(&token, TokenFault::Issuer).await;
    }
}

#[tokio::test]
async fn of_many_tenants_those_that_are_listed_are_let_in_under_names_of_their_own() {
    for named in ["common", "organizations", "{tenantid}"] {
        let server = if named == "{tenantid}" {
            "common"
        } else {
            named
        };
        let mut fake = fake(server).await;
        let template = fake.issuer.replace(server, "{tenantid}");
        let metadata = format!("/{server}/v2.0/.well-known/openid-configuration");
        fake.server.describe(&metadata, &template);
        let keys = [
            (fake.key, &template),
            (&*SECOND, &template.replace("{tenantid}", CONSUMERS)),
        ];
        let keys = keys.map(|(key, issuer)| with(&key.jwk(), json!({ "issuer": issuer })));
        fake.server
            .publish_text(json!({ "keys": keys }).to_string());

        let trusting = Trusting::new(Issuer {
            issuer: fake.issuer.replace(server, named),
            tenants: vec![TENANT.to_uppercase(), CONSUMERS.to_owned()],
            ..trusting(&fake)
        })
        .await;
        let of = |tenant: &str| template.replace("{tenantid}", tenant);
        let claims = |tenant: &str| with(&user(), json!({ "iss": of(tenant), "tid": tenant }));
        assert_eq!(trusting.servers(), json!([of(server)]));

        let due = format!("{}#HKZpfaHyWadeOouYlitjrI", of(TENANT));
        assert_eq!(trusting.principal(&fake.token(claims(TENANT))).await, due);
        assert_eq!(trusting.principal(&fake.token(user_1())).await, due);
        trusting
            .refuses(&fake.token(claims(OTHER)), TokenFault::Issuer)
            .await;
        trusting
            .refuses(&fake.token(claims("{tenantid}")), TokenFault::Issuer)
            .await;

        fake.key = &SECOND;
        let header = json!({ "typ": "JWT", "alg": "RS256", "kid": "second" });
        let due = format!("{}#HKZpfaHyWadeOouYlitjrI", of(CONSUMERS));
        let personal = fake.signed(&header, claims(CONSUMERS));
        assert_eq!(trusting.principal(&personal).await, due);
        trusting
            .refuses(&fake.signed(&header, claims(TENANT)), TokenFault::Key)
            .await;
    }
}
