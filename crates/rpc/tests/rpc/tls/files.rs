use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, SanType, date_time_ymd};
use shoal_rpc::{Tls, TlsFiles, Validity};

use super::authority::{Authority, Files};

fn refusal(files: &Files) -> String {
    Tls::open(files.settings()).unwrap_err().to_string()
}

#[track_caller]
fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

#[test]
fn a_good_certificate_says_when_it_is_valid() {
    let files = Files::of(&Authority::new());
    let validity = Validity {
        not_before: 1_577_836_800,
        not_after: 2_208_988_800,
    };
    assert_eq!(files.open().validity(), validity);
}

#[test]
fn every_file_is_named_that_cannot_be_read_or_holds_nothing_of_use() {
    let authority = Authority::new();
    for (file, which, nothing) in [
        ("tls.crt", "certificate", "no certificate"),
        ("tls.key", "key", "no private key"),
        ("ca.crt", "authority", "no certificate"),
    ] {
        let files = Files::of(&authority);
        files.write_one(file, "nothing\n");
        says(&refusal(&files), &[which, file, nothing]);
        files.write_one(file, "-----BEGIN CERTIFICATE-----\nMIIB\n");
        says(&refusal(&files), &[which, file]);
        files.remove(file);
        says(&refusal(&files), &[which, file, "cannot be read"]);
    }
}

#[test]
fn a_key_must_belong_to_its_certificate() {
    let authority = Authority::new();
    let files = Files::of(&authority);
    files.write_one("tls.key", &authority.issue().key);
    says(
        &refusal(&files),
        &["key", "tls.key", "does not belong to", "tls.crt"],
    );
}

#[test]
fn nothing_of_a_key_is_ever_said() {
    let authority = Authority::new();
    let files = Files::of(&authority);
    let broken = authority.issue().key.replace("-----END", "-----AND");
    files.write_one("tls.key", &broken);
    let message = refusal(&files);
    let secret = broken.lines().nth(1).unwrap();
    assert!(!message.contains(&secret[..8]), "{message}");
}

#[test]
fn a_certificate_that_peers_would_refuse_is_refused_at_once() {
    let authority = Authority::new();
    let refused = |change: fn(&mut CertificateParams)| {
        let files = Files::with(&authority.issue_with(change), &authority.pem());
        refusal(&files)
    };
    let expired = refused(|params| params.not_after = date_time_ymd(2021, 1, 1));
    says(&expired, &["tls.crt", "has expired"]);
    let early = refused(|params| params.not_before = date_time_ymd(2039, 1, 1));
    says(&early, &["tls.crt", "is valid only in"]);
    let nameless = refused(|params| params.subject_alt_names.clear());
    says(&nameless, &["tls.crt", "\"shoal\""]);
    for usage in [
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ] {
        let issued = authority.issue_with(|params| params.extended_key_usages = vec![usage]);
        let files = Files::with(&issued, &authority.pem());
        says(&refusal(&files), &["\"server auth\" and \"client auth\""]);
    }
    let files = Files::with(&authority.issue(), &Authority::new().pem());
    says(
        &refusal(&files),
        &["tls.crt", "not issued by the authority"],
    );
}

#[test]
fn a_node_needs_a_certificate_that_names_no_pool() {
    let authority = Authority::new();
    let issued = authority.issue_with(|params| {
        let pool = SanType::DnsName("search.pool.shoal".try_into().unwrap());
        params.subject_alt_names.push(pool);
    });
    let node = |files: &Files| TlsFiles {
        for_node: true,
        ..files.settings()
    };
    let files = Files::with(&issued, &authority.pem());
    assert!(Tls::open(files.settings()).is_ok(), "of a worker");
    let message = Tls::open(node(&files)).unwrap_err().to_string();
    let parts = [
        "tls.crt",
        "workers of the pools search",
        "does not name pools",
    ];
    says(&message, &parts);
    assert!(Tls::open(node(&Files::of(&authority))).is_ok());
}

#[test]
fn a_name_must_be_one_that_certificates_can_carry() {
    let files = Files::of(&Authority::new());
    let settings = TlsFiles {
        name: "no name".to_owned(),
        ..files.settings()
    };
    let message = Tls::open(settings).unwrap_err().to_string();
    says(&message, &["no name", "shoal.example.com"]);
}
