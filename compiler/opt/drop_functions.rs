//! Drops the functions that the program's body cannot reach by calls.
//!
//! A walk over the call graph from the body marks what is kept; the others go, and what is kept moves up in its old order.
//!
//! **In:** a program in any form. **Out:** the same program without the dropped functions; function ids are new. Not run
//! where the result is linked with code that may call any function. Cost: linear in the program.

use crate::ir::{FuncId, Op, Program};
use cranelift_entity::{PrimaryMap, SecondaryMap, packed_option::PackedOption};

/// Drops functions; gives how many.
pub fn run(program: &mut Program) -> usize {
    let kept = reachable(program);
    let before = program.functions.len();
    let mut new_ids: SecondaryMap<FuncId, PackedOption<FuncId>> = SecondaryMap::new();
    let mut functions: PrimaryMap<FuncId, _> = PrimaryMap::new();
    for (id, function) in std::mem::take(&mut program.functions) {
        if kept[id] {
            new_ids[id] = functions.push(function).into();
        }
    }
    for function in functions.values_mut() {
        for inst in function.insts.values_mut() {
            if let Op::Call { callee, .. } = &mut inst.op {
                // Calls that no block holds any more may name dropped functions; they take the body's id.
                *callee = new_ids[*callee].expand().or(new_ids[program.entry].expand()).expect("the body is kept");
            }
        }
    }
    program.entry = new_ids[program.entry].expand().expect("the body is kept");
    program.functions = functions;
    before - program.functions.len()
}

fn reachable(program: &Program) -> SecondaryMap<FuncId, bool> {
    let mut reached = SecondaryMap::new();
    let mut work = vec![program.entry];
    reached[program.entry] = true;
    while let Some(id) = work.pop() {
        let function = &program.functions[id];
        for inst in function.layout.iter().flat_map(|block| &function.blocks[*block].insts) {
            if let Op::Call { callee, .. } = &function.insts[*inst].op
                && !reached[*callee]
            {
                reached[*callee] = true;
                work.push(*callee);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{parse::parse, print::print};
    use crate::support::span::Source;

    #[test]
    fn keeps_what_the_body_reaches() {
        let function = |name: &str, calls: &[&str]| {
            let calls: String = calls.iter().map(|callee| format!("  call {callee}()\n")).collect();
            format!("fn {name}() {{\nb0:\n{calls}  return\n}}\n")
        };
        let text = [
            function("unused", &["used"]),
            function("used", &["deep"]),
            function("main", &["used"]),
            function("alone", &["alone", "other"]),
            function("other", &["alone"]),
            function("deep", &["used"]),
        ]
        .concat();
        let mut program = parse(&Source::new("x.ir", text)).expect("it parses");
        assert_eq!(run(&mut program), 3);
        let expected = [function("used", &["deep"]), function("main", &["used"]), function("deep", &["used"])].concat();
        let expected = parse(&Source::new("y.ir", expected)).expect("it parses");
        assert_eq!(print(&program).to_string(), print(&expected).to_string());
        assert_eq!(program.functions[program.entry].name, "main");
        assert_eq!(run(&mut program), 0);
    }
}
