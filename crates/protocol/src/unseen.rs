use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory};
use icu_properties::{CodePointMapData, CodePointSetData};

/// Whether a character is invisible: controls, format characters, spaces other than U+0020, separators, ignorable and
/// unassigned ones.
pub fn is_unseen(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_control();
    }
    const CATEGORIES: icu_properties::CodePointMapDataBorrowed<'static, GeneralCategory> =
        CodePointMapData::<GeneralCategory>::new();
    let unseen = matches!(
        CATEGORIES.get(letter),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
            | GeneralCategory::SpaceSeparator
            | GeneralCategory::PrivateUse
            | GeneralCategory::Unassigned
            | GeneralCategory::Surrogate
    );
    unseen
        || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(letter)
        || is_blank(letter)
}

/// Whether a character is blank although no Unicode property says so.
fn is_blank(letter: char) -> bool {
    matches!(
        letter,
        // Blank Braille, a null notehead, a filler, and two hieroglyph blanks.
        '\u{2800}' | '\u{1d159}' | '\u{16fe4}' | '\u{13441}' | '\u{13442}'
    )
}

#[cfg(test)]
mod tests {
    use super::is_unseen;

    #[test]
    fn what_shows_itself_is_seen() {
        for letter in " aZ~äß漢字नि😀€“”…\u{301}ِ،".chars() {
            assert!(!is_unseen(letter), "{letter:?}");
        }
    }

    #[test]
    fn what_shows_nothing_is_unseen_by_its_property() {
        for letter in [
            '\0',
            '\n',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{9b}',
            '\u{a0}',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{1680}',
            '\u{17b4}',
            '\u{180e}',
            '\u{2003}',
            '\u{200b}',
            '\u{200d}',
            '\u{2028}',
            '\u{2029}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{206a}',
            '\u{2800}',
            '\u{3000}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff9}',
            '\u{fff0}',
            '\u{e000}',
            '\u{ffff}',
            '\u{378}',
            '\u{1bca0}',
            '\u{1d173}',
            '\u{1d159}',
            '\u{13430}',
            '\u{13441}',
            '\u{e0041}',
            '\u{e01ef}',
            '\u{f0000}',
            '\u{10ffff}',
        ] {
            assert!(is_unseen(letter), "U+{:04X}", u32::from(letter));
        }
    }

    #[test]
    fn ranges_that_were_known_before_are_covered() {
        for range in [
            '\u{17b4}'..='\u{17b5}',
            '\u{180b}'..='\u{180f}',
            '\u{200b}'..='\u{200f}',
            '\u{202a}'..='\u{202e}',
            '\u{2060}'..='\u{206f}',
            '\u{fe00}'..='\u{fe0f}',
            '\u{fff0}'..='\u{fffb}',
            '\u{e0000}'..='\u{e0fff}',
        ] {
            for letter in range {
                assert!(is_unseen(letter), "U+{:04X}", u32::from(letter));
            }
        }
    }
}
