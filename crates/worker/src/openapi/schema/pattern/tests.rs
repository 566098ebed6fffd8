use super::mended;

#[test]
fn what_an_ecmascript_engine_compiles_stays_as_it_is() {
    for pattern in [
        "^[a-z]+$",
        r"^\d{4}-\d{2}-\d{2}$",
        r"^(?!x)[\w.]+\.[a-z]{2,}$",
        r"^\p{L}+$",
        "^[äöü€]+é[^€]$",
        r"(?<year>\d+)-(x)\2",
        r"[^\]\\-]",
    ] {
        assert_eq!(mended(pattern).as_deref(), Some(pattern));
    }
}

#[test]
fn what_other_languages_write_is_translated() {
    for (written, meant) in [
        (r"\A[0-9]+\Z", "^[0-9]+$"),
        (r"\A\d\z", r"^\d$"),
        ("/^foo$/", "^foo$"),
        (r"/^a\/b$/u", r"^a\/b$"),
        (r"^[\w\-\.\@]+$", r"^[\w\-\.@]+$"),
        (r"^\-?\d\%$", r"^-?\d%$"),
        (r"^[\w-.]+$", r"^[\w\-.]+$"),
        (r"^[a-z-\d]+$", r"^[a-z\-\d]+$"),
        ("^{id}$", r"^\{id\}$"),
        ("^a{,3}$", "^a{0,3}$"),
        ("(?P<a>x)y", "(?<a>x)y"),
        ("^[[:alpha:]_]+$", "^[a-zA-Z_]+$"),
        ("^[]a]$", r"^[\]a]$"),
        (r"^[a[b]$", r"^[a\[b]$"),
        (r"\x{1F600}", r"\u{1F600}"),
        (r"^[\p{L}-_]$", r"^[\p{L}\-_]$"),
        (r"[a\h]\h", r"[a \t][ \t]"),
    ] {
        assert_eq!(mended(written).as_deref(), Some(meant), "{written}");
    }
}

#[test]
fn what_cannot_be_translated_is_lost() {
    for pattern in [
        "(",
        "(?i)abc",
        "/abc/i",
        "a++",
        "(?>a)b",
        r"(?<a>x)\k<a>",
        r"\Ga",
        r"\p{IsLatin}",
        "[a-z&&[^b]]",
        "[z-a]",
        r"\",
        "*",
    ] {
        assert_eq!(mended(pattern), None, "{pattern}");
    }
    assert_eq!(mended(&"a".repeat(5000)), None);
}
