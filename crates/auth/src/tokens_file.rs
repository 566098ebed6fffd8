use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use shoal_ports::{FileWatch, Principal, read_text};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::config::Token;
use crate::token_hash::TokenHash;

const LOOK: Duration = Duration::from_secs(2);
/// Enough for some hundred thousand tokens.
const LONGEST: u64 = 32 << 20;

/// Principals by the hash of their token. The map's random keys hide how similar a wrong hash is to an entry.
pub(crate) type Principals = HashMap<TokenHash, Principal>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokensDocument {
    /// Required, because an empty file must not revoke all tokens.
    tokens: Vec<Token>,
}

pub(crate) struct TokensFile {
    file: PathBuf,
    fixed: Principals,
    tokens: watch::Sender<Arc<Principals>>,
}

impl TokensFile {
    pub(crate) fn new(
        file: PathBuf,
        fixed: Principals,
        tokens: watch::Sender<Arc<Principals>>,
    ) -> Self {
        Self {
            file,
            fixed,
            tokens,
        }
    }

    /// Keeps the earlier tokens if the file is invalid. Configured tokens stay.
    fn read(&self) -> Result<usize, String> {
        let of_file = read(&self.file)?;
        let count = of_file.len();
        let mut all = self.fixed.clone();
        for (hash, principal) in of_file {
            if let Some(other) = all.insert(hash, principal.clone())
                && other != principal
            {
                return Err(twice(&self.file, &other, &principal));
            }
        }
        self.tokens.send_replace(Arc::new(all));
        Ok(count)
    }

    /// Reads the file now and after each change.
    ///
    /// # Errors
    /// The file is invalid now.
    pub(crate) fn watch(self) -> Result<AbortOnDropHandle<()>, String> {
        let mut watch = FileWatch::new(&self.file);
        self.read()?;
        Ok(AbortOnDropHandle::new(tokio::spawn(async move {
            let watched = Arc::new(self);
            loop {
                watch.changed(LOOK).await;
                let reading = watched.clone();
                let read = tokio::task::spawn_blocking(move || reading.read()).await;
                let file = watched.file.display();
                match read {
                    Ok(Ok(tokens)) => tracing::info!(%file, tokens, "the tokens have changed"),
                    Ok(Err(error)) => {
                        tracing::error!(%file, error, "cannot use the changed tokens; the previous ones stay in use");
                    }
                    Err(_) => tracing::error!(%file, "reading the tokens failed"),
                }
            }
        })))
    }
}

fn read(file: &Path) -> Result<Principals, String> {
    let text = read_text(file, LONGEST)
        .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    // The original error quotes the line, which may hold a token.
    let document: TokensDocument = toml::from_str(&text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map_or(1, |before| before.matches('\n').count() + 1);
        format!(
            "{}, line {line}: expected [[tokens]] with name and sha256, or tokens = [] for none",
            file.display()
        )
    })?;
    let mut principals = Principals::default();
    for token in document.tokens {
        let principal = Principal::new(token.name);
        if principal.is_reserved() || principal.as_str().is_empty() {
            return Err(format!(
                "{}: the name {principal:?} is reserved for Shoal itself, or empty: use another",
                file.display()
            ));
        }
        if let Some(other) = principals.insert(token.sha256, principal.clone()) {
            return Err(twice(file, &other, &principal));
        }
    }
    Ok(principals)
}

fn twice(file: &Path, one: &Principal, other: &Principal) -> String {
    let file = file.display();
    format!("{file}: {one:?} and {other:?} have the same token: each needs its own")
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use shoal_ports::{Authenticator as _, Credentials};

    use super::{Principals, TokensFile};
    use crate::config::{Auth, AuthMode};
    use crate::{StaticTokens, TokenHash};

    fn write(file: &Path, entries: &[(&str, &str)]) {
        let entry = |(name, token): &(&str, &str)| {
            let hash = TokenHash::of(token).to_hex();
            format!("[[tokens]]\nname = \"{name}\"\nsha256 = \"{hash}\"\n")
        };
        let text: String = entries.iter().map(entry).collect();
        let next = file.with_extension("next");
        std::fs::write(&next, text).unwrap();
        std::fs::rename(&next, file).unwrap();
    }

    async fn named(tokens: &StaticTokens, token: &str) -> Option<String> {
        let known = tokens.authenticate(Credentials::bearer(token)).await.ok()?;
        Some(known.principal.to_string())
    }

    async fn becomes(tokens: &StaticTokens, token: &str, due: Option<&str>) {
        let changed = async {
            while named(tokens, token).await.as_deref() != due {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let within = std::time::Duration::from_secs(20);
        (tokio::time::timeout(within, changed).await)
            .unwrap_or_else(|_| panic!("{token}: not {due:?}"));
    }

    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn the_file_is_watched_on_after_something_that_cannot_be_read() {
        use std::os::unix::fs::symlink;
        let folder = std::env::temp_dir().join(format!("shoal-tokens-odd-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("tokens.toml");
        let auth = Auth {
            mode: AuthMode::Tokens,
            tokens_file: Some(file.clone()),
            ..Auth::default()
        };
        write(&file, &[("alice", "first")]);
        let tokens = StaticTokens::start(&auth).unwrap();
        let pipe = |place: &Path| {
            let made = std::process::Command::new("mkfifo").arg(place).status();
            assert!(made.unwrap().success());
        };
        let endless = |place: &Path| symlink("/dev/zero", place).unwrap();
        for (make, next) in [(pipe as fn(&Path), "second"), (endless, "third")] {
            std::fs::remove_file(&file).unwrap();
            make(&file);
            let reread = TokensFile::new(file.clone(), Principals::new(), tokens.handle());
            let refused = reread.read().unwrap_err();
            assert!(refused.ends_with("it is no regular file"), "{refused}");
            tokio::time::sleep(super::LOOK * 4).await;
            write(&file, &[("alice", next)]);
            becomes(&tokens, next, Some("alice")).await;
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn a_changed_file_counts_and_a_broken_one_does_not() {
        let folder = std::env::temp_dir().join(format!("shoal-tokens-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("tokens.toml");
        let auth = Auth {
            mode: AuthMode::Tokens,
            tokens_file: Some(file.clone()),
            ..Auth::default()
        };
        assert!(StaticTokens::start(&auth).is_err(), "there is no file yet");
        write(&file, &[("alice", "first")]);
        let tokens = Arc::new(StaticTokens::start(&auth).unwrap());
        assert_eq!(named(&tokens, "first").await.as_deref(), Some("alice"));

        write(&file, &[("alice", "second"), ("bob", "third")]);
        becomes(&tokens, "first", None).await;
        assert_eq!(named(&tokens, "third").await.as_deref(), Some("bob"));

        std::fs::write(&file, "[[tokens]]\nname = \"eve\"\nsha256 = \"secret\"\n").unwrap();
        let reread = TokensFile::new(file.clone(), Principals::new(), tokens.handle());
        let broken = reread.read().unwrap_err();
        assert!(
            broken.contains("line 3") && !broken.contains("secret"),
            "{broken}"
        );
        write(&file, &[]);
        assert!(reread.read().is_err(), "it has been emptied");
        write(&file, &[("shoal-console", "fifth")]);
        let reserved = reread.read().unwrap_err();
        assert!(reserved.contains("reserved"), "{reserved}");
        write(&file, &[("carol", "sixth"), ("dave", "sixth")]);
        let twice = reread.read().unwrap_err();
        assert!(twice.contains("have the same token"), "{twice}");
        assert_eq!(named(&tokens, "third").await.as_deref(), Some("bob"));
        write(&file, &[("carol", "fourth"), ("alice", "second")]);
        becomes(&tokens, "fourth", Some("carol")).await;
        assert_eq!(named(&tokens, "second").await.as_deref(), Some("alice"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
