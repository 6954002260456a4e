use super::*;
use serde_json::json;

fn with_note(noted: Range<u64>) -> Outcome {
    let claim = Claim {
        fact: "optimization.level".to_owned(),
        value: json!(Level::O2),
        strength: Strength::Recorded,
        source: Source::Annobin,
        scope: Scope::Ranges,
        at: None,
        quote: None,
    };
    reconcile(Witnessed {
        account: Account { bytes: 1000, undescribed: vec![0..100, 100..1000], ..Account::default() },
        code: CodeSeen { whole: Whole::Optimized, ..optimized(&[0..100, 100..1000]) },
        recorded_ranges: vec![(noted, Level::O2)],
        claims: vec![claim],
        ..Witnessed::default()
    })
}

fn optimized(functions: &[Range<u64>]) -> CodeSeen {
    let functions = functions.iter().map(|range| (range.clone(), State::Optimized)).collect();
    CodeSeen { functions, ..CodeSeen::default() }
}

#[test]
fn a_note_on_a_little_code_does_not_speak_of_the_rest() {
    let little = with_note(0..100);
    let share = little.optimization.by_level.iter().find(|share| share.level == Level::O2).unwrap();
    assert_eq!(share.text_bytes, 100);
    assert_eq!(little.optimization.level, Level::Optimized);
    // A program built with notes has code of other origin in it, too: there it is the analogy that holds.
    assert_eq!(with_note(100..1000).optimization.level, Level::O2);
}
