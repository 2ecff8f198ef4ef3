//! Plays a parallel copy step by step: what each place holds after each move, what was ready, which cycle was broken with
//! which temporary, and what the naive order would have left.
//!
//! The steps are those of the compiled program; this only replays them, with a simulation of its own, and says where the
//! result differs from the simultaneous assignment (never, for the compiler's own sequence).
//!
//! **in**: the parallel copy and its sequence, places by name. **out**: a [`Replay`]. Cost: quadratic in the moves of one
//! copy, for people's eyes; callers cut copies of more than [`LARGEST`] moves.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Copies with more moves are not replayed.
pub const LARGEST: usize = 64;

/// A move of a parallel copy or of its sequence, by the names of the places; a constant source is its own name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Move {
    /// What it writes.
    pub dst: String,
    /// What it reads.
    pub src: String,
    /// Is the source a constant?
    pub constant: bool,
    /// Does it save what the source holds, to break a cycle?
    pub rescue: bool,
}

/// The state behind one step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The move.
    pub moved: Move,
    /// Destinations that could be written before this step: nothing left reads them.
    pub ready: Vec<String>,
    /// What each place holds behind it.
    pub holds: BTreeMap<String, String>,
}

/// A parallel copy, played.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replay {
    /// The moves that happen at once.
    pub moves: Vec<Move>,
    /// What each place holds before: itself, by name.
    pub start: BTreeMap<String, String>,
    /// What the destinations must hold at last.
    pub goal: BTreeMap<String, String>,
    /// The sequence.
    pub steps: Vec<Step>,
    /// What the moves in their written order would leave wrong: place, what it would hold, what it must.
    pub naive_wrong: Vec<(String, String, String)>,
}

/// Plays the sequence of a parallel copy.
pub fn replay(moves: &[Move], sequence: &[Move]) -> Replay {
    let mut start = BTreeMap::new();
    for step in moves.iter().chain(sequence) {
        for (place, constant) in [(&step.dst, false), (&step.src, step.constant)] {
            if !constant {
                start.entry(place.clone()).or_insert_with(|| place.clone());
            }
        }
    }
    // A temporary holds nothing that anyone wants.
    for step in sequence.iter().filter(|step| step.rescue) {
        start.insert(step.dst.clone(), "–".to_string());
    }
    let goal: BTreeMap<String, String> = moves.iter().map(|step| (step.dst.clone(), step.src.clone())).collect();
    let mut left: Vec<Move> = moves.iter().filter(|step| step.dst != step.src).cloned().collect();
    let mut holds = start.clone();
    let mut steps = Vec::with_capacity(sequence.len());
    for step in sequence {
        let ready = left
            .iter()
            .filter(|candidate| left.iter().all(|other| other.constant || other.src != candidate.dst))
            .filter(|candidate| !candidate.constant || left.iter().all(|other| other.constant))
            .map(|candidate| candidate.dst.clone())
            .collect();
        let content = if step.constant { step.src.clone() } else { holds[&step.src].clone() };
        holds.insert(step.dst.clone(), content);
        if step.rescue {
            left.iter_mut().filter(|other| other.src == step.src).for_each(|other| other.src.clone_from(&step.dst));
        } else {
            left.retain(|other| other.dst != step.dst);
        }
        steps.push(Step { moved: step.clone(), ready, holds: holds.clone() });
    }
    let mut naive = start.clone();
    for step in moves {
        let content = if step.constant { step.src.clone() } else { naive[&step.src].clone() };
        naive.insert(step.dst.clone(), content);
    }
    let naive_wrong = goal
        .iter()
        .filter(|(place, wanted)| naive[*place] != **wanted)
        .map(|(place, wanted)| (place.clone(), naive[place].clone(), wanted.clone()))
        .collect();
    Replay { moves: moves.to_vec(), start, goal, steps, naive_wrong }
}

impl Replay {
    /// Destinations that do not hold what they must at the end; none, unless the sequence is wrong.
    pub fn wrong(&self) -> Vec<&String> {
        let last = self.steps.last().map_or(&self.start, |step| &step.holds);
        self.goal.iter().filter(|(place, wanted)| last[*place] != **wanted).map(|(place, _)| place).collect()
    }

    /// For the page's stepper.
    pub fn json(&self, function: &str, edge: &str) -> Value {
        let steps: Vec<Value> = self
            .steps
            .iter()
            .map(|step| {
                let text = format!("{} = copy {}", step.moved.dst, step.moved.src);
                let note = if step.moved.rescue {
                    format!("rescues {} from the cycle", step.moved.src)
                } else if step.moved.constant {
                    "a constant reads nothing: last".to_string()
                } else {
                    String::new()
                };
                let done = if step.moved.rescue { Value::Null } else { json!(step.moved.dst) };
                json!({ "text": text, "note": note, "ready": step.ready, "from": step.moved.src,
                    "to": step.moved.dst, "state": step.holds, "done": done })
            })
            .collect();
        let moves: Vec<Value> = self
            .moves
            .iter()
            .map(|step| if step.constant { json!([step.dst, null]) } else { json!([step.dst, step.src]) })
            .collect();
        let naive: Vec<String> = self.moves.iter().map(|step| format!("{} = copy {}", step.dst, step.src)).collect();
        json!({ "function": function, "edge": edge, "moves": moves, "start": self.start, "goal": self.goal, "steps": steps,
            "naive": { "steps": naive, "wrong": self.naive_wrong } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moves(text: &str) -> Vec<Move> {
        text.split(", ")
            .map(|step| {
                let (dst, src) = step.split_once('=').expect("a move is written dst=src");
                let rescue = dst.starts_with('t');
                Move { dst: dst.into(), src: src.into(), constant: src.parse::<i64>().is_ok(), rescue }
            })
            .collect()
    }

    #[test]
    fn a_swap_is_right_with_a_rescue_and_wrong_in_naive_order() {
        let replay = replay(&moves("x=y, y=x"), &moves("t=x, x=y, y=t"));
        assert!(replay.wrong().is_empty());
        assert_eq!(replay.naive_wrong, [("y".to_string(), "y".to_string(), "x".to_string())]);
        assert_eq!(replay.steps[0].ready, Vec::<String>::new());
        assert_eq!(replay.steps[1].ready, ["x"]);
        assert_eq!(replay.steps[2].ready, ["y"]);
        assert_eq!(replay.steps[2].holds["y"], "x");
    }

    #[test]
    fn a_chain_has_one_order_and_constants_come_last() {
        let replay = replay(&moves("a=b, b=c, c=7"), &moves("a=b, b=c, c=7"));
        assert!(replay.wrong().is_empty() && replay.naive_wrong.is_empty());
        assert_eq!(replay.steps[0].ready, ["a"]);
        assert_eq!(replay.steps[2].ready, ["c"]);
    }

    #[test]
    fn a_wrong_sequence_is_told() {
        assert_eq!(replay(&moves("x=y, y=x"), &moves("x=y, y=x")).wrong(), ["y"]);
    }
}
