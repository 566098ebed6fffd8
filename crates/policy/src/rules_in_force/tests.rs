use std::path::PathBuf;

use super::RulesInForce;
use crate::config::{PolicyConfig, Rule};

struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str, text: &str) -> Self {
        let file = format!("shoal-policy-{}-{name}.toml", std::process::id());
        let it = Self(std::env::temp_dir().join(file));
        it.write(text);
        it
    }

    fn write(&self, text: &str) {
        std::fs::write(&self.0, text).unwrap();
    }

    fn open(&self, rules: Vec<Rule>) -> RulesInForce {
        let config = PolicyConfig {
            rules,
            file: Some(self.0.clone()),
            ..PolicyConfig::default()
        };
        RulesInForce::open(&config).unwrap().unwrap()
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const ONE: &str = "[[rules]]\nname = 'one'\neffect = 'allow'\n";

#[test]
fn a_changed_file_is_in_force_and_an_invalid_one_is_not() {
    let file = TestFile::new("changes", ONE);
    let rules = file.open(Vec::new());
    let mut changed = rules.changed();
    let number = || rules.current().fingerprint();
    let first = number();
    assert!(!rules.reread());
    for invalid in [
        "[[rules]]\nname = 'x'\n",
        "not toml",
        "",
        "# cut off",
        "[[rules]]\nname='x'\neffect='allow'\nprincipals=[]\n",
        "[[rules]]\nname='x'\neffect='allow'\nwhen='('\n",
    ] {
        file.write(invalid);
        assert!(!rules.reread(), "{invalid}");
        assert_eq!(number(), first);
    }
    file.write("rules = []");
    assert!(rules.reread() && rules.current().is_open(), "that is meant");
    changed.mark_unchanged();
    file.write(ONE);
    assert!(rules.reread() && !rules.current().is_open());
    changed.mark_unchanged();
    file.write(&format!("# a remark\n{ONE}"));
    assert!(!rules.reread() && !changed.has_changed().unwrap());
    file.write(&ONE.replace("allow", "deny"));
    assert!(rules.reread());
    assert_ne!(number(), first);
    assert!(changed.has_changed().unwrap());
    changed.mark_unchanged();
    std::fs::remove_file(&file.0).unwrap();
    assert!(!rules.reread());
}

#[test]
fn rules_that_were_read_are_not_in_force_and_later_ones_stay() {
    let file = TestFile::new("readings", ONE);
    let rules = file.open(Vec::new());
    let number = || rules.current().fingerprint();
    let first = number();
    let read = || rules.read_again().unwrap().unwrap();
    file.write(&ONE.replace("allow", "deny"));
    let earlier = read();
    assert_eq!(number(), first);
    file.write(&ONE.replace("one", "later"));
    let later = read();
    assert!(rules.put_in_force(later));
    let newest = number();
    let known = rules.current();
    assert!(!rules.put_in_force(read()));
    assert!(std::sync::Arc::ptr_eq(&known, &rules.current()));
    assert!(!rules.put_in_force(earlier));
    assert_eq!(number(), newest);
    file.write(&ONE.replace("allow", "deny"));
    let earlier = read();
    file.write(&ONE.replace("one", "later"));
    assert!(!rules.reread() && !rules.put_in_force(earlier));
    assert_eq!(number(), newest);
}

#[cfg(unix)]
#[test]
fn what_would_be_waited_for_is_no_file_with_rules() {
    let file = TestFile::new("pipe", ONE);
    let rules = file.open(Vec::new());
    let first = rules.current().fingerprint();
    std::fs::remove_file(&file.0).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&file.0).status();
    assert!(made.unwrap().success());
    assert!(!rules.reread());
    assert_eq!(rules.current().fingerprint(), first);
    std::fs::remove_file(&file.0).unwrap();
    file.write(&ONE.replace("allow", "deny"));
    assert!(rules.reread());
}

#[test]
fn rules_of_the_configuration_stay_when_the_file_changes() {
    let file = TestFile::new("both", ONE);
    let own: Rule = toml::from_str("name = 'own'\neffect = 'deny'").unwrap();
    let rules = file.open(vec![own]);
    let before = rules.current().fingerprint();
    file.write(&ONE.replace("allow", "deny"));
    assert!(rules.reread());
    assert_ne!(rules.current().fingerprint(), before);
    file.write("[[rules]]\nname = 'own'\neffect = 'allow'\n");
    assert!(!rules.reread());
}

#[test]
fn nothing_is_opened_without_rules_or_by_invalid_ones() {
    assert!(
        RulesInForce::open(&PolicyConfig::default())
            .unwrap()
            .is_none()
    );
    let missing = PolicyConfig {
        file: Some("/nowhere/at/all.toml".into()),
        ..PolicyConfig::default()
    };
    assert!(RulesInForce::open(&missing).is_err());
}
