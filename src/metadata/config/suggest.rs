//! "Did you mean": the name nearest to a wrong one.

/// The name that `name` was probably meant to be: few letters away for its length, the nearest, the first of equals.
pub fn suggest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let far = 1 + name.len() / 4;
    let near =
        names.into_iter().map(|other| (distance(name, other), other)).filter(|(far_off, _)| *far_off <= far);
    near.min_by_key(|(far_off, _)| *far_off).map(|(_, other)| other)
}

/// How many letters must be put in, taken out or changed to make one of the other (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::super::BROKER_KEYS;
    use super::*;

    #[test]
    fn a_slip_finds_its_key() {
        let names = || BROKER_KEYS.iter().map(|key| key.name);
        assert_eq!(suggest("log.dirz", names()), Some("log.dirs"));
        assert_eq!(suggest("auto.create.topic.enable", names()), Some("auto.create.topics.enable"));
        assert_eq!(suggest("completely.else", names()), None);
    }
}
