use crate::execution::*;
use crate::ir::*;
use crate::semantics::*;
use crate::support::span::Span;

pub fn run(program: &Program, input: &[u8], limits: Limits) -> Outcome {
    let mut machine = Machine::new(input, limits);
    let mut heap: Vec<Vec<i64>> = Vec::new();
    let end = match call(program, program.entry, Vec::new(), &mut machine, &mut heap) {
        Ok(_) => End::Normal,
        Err(end) => end,
    };
    machine.finish(end)
}

fn call(p: &Program, id: FuncId, args: Vec<i64>, m: &mut Machine, heap: &mut Vec<Vec<i64>>) -> Result<i64, End> {
    let f = &p.functions[id];
    let mut v: Vec<Option<i64>> = vec![None; f.values.len()];
    let at = |s: Stop, span: Span| s.at(span);
    m.enter().map_err(|s| at(s, Span::NONE))?;
    for (param, arg) in f.params.iter().zip(args) {
        v[param.as_u32() as usize] = Some(arg);
    }
    let mut block = f.entry();
    loop {
        m.step().map_err(|s| at(s, Span::NONE))?;
        let data = &f.blocks[block];
        macro_rules! get {
            ($o:expr) => {
                match $o {
                    Operand::Value(x) => {
                        v[x.as_u32() as usize].unwrap_or_else(|| panic!("{x} undefined in {block} of {}", f.name))
                    }
                    Operand::Int(x) => x,
                    Operand::Bool(x) => i64::from(x),
                }
            };
        }
        for inst in &data.insts {
            m.step().map_err(|s| at(s, Span::NONE))?;
            let d = &f.insts[*inst];
            let span = d.span;
            let trap = |t: Trap| Stop::Trap(t).at(span);
            let r = match &d.op {
                Op::Copy(a) => get!(*a),
                Op::Parallel(_) => panic!(),
                Op::Binary { op, args, .. } => {
                    op.eval(get!(args[0]), get!(args[1])).ok_or(trap(Trap::DivisionByZero))?
                }
                Op::Compare { op, args } => i64::from(op.eval(get!(args[0]), get!(args[1]))),
                Op::Unary { op, arg } => op.eval(get!(*arg)),
                Op::Select { cond, args } => {
                    let (a, b) = (get!(args[0]), get!(args[1]));
                    if get!(*cond) != 0 { a } else { b }
                }
                Op::Array { element, init, len } => {
                    let n = m.allocate(*element, get!(*len)).map_err(|s| at(s, span))?;
                    heap.push(vec![get!(*init); n]);
                    heap.len() as i64 - 1
                }
                Op::Free(a) => {
                    let a = get!(*a) as usize;
                    let Type::Array(e) = f.type_of(match &d.op {
                        Op::Free(a) => *a,
                        _ => panic!(),
                    }) else {
                        panic!()
                    };
                    m.release(e, heap[a].len());
                    heap[a] = Vec::new();
                    0
                }
                Op::Len(a) => heap[get!(*a) as usize].len() as i64,
                Op::Bounds { index, len } => {
                    let (index, length) = (get!(*index), get!(*len));
                    if !(0 <= index && index < length) {
                        return Err(trap(Trap::IndexOutOfBounds { index, length }));
                    }
                    0
                }
                Op::Load { array, index, .. } => heap[get!(*array) as usize][get!(*index) as usize],
                Op::Store { array, index, value, .. } => {
                    let x = get!(*value);
                    heap[get!(*array) as usize][get!(*index) as usize] = x;
                    0
                }
                Op::Call { callee, args } => {
                    let args = args.iter().map(|a| get!(*a)).collect();
                    call(p, *callee, args, m, heap)?
                }
                Op::Read => m.input.read().map_err(trap)?,
                Op::Eof => i64::from(m.input.eof()),
                Op::Print(args) => {
                    for (i, arg) in args.iter().enumerate() {
                        let e = if i + 1 == args.len() { b'\n' } else { b' ' };
                        match arg {
                            PrintArg::Operand(o) => {
                                let x = get!(*o);
                                if f.type_of(*o) == Type::BOOL { m.print_bool(x != 0, e) } else { m.print_int(x, e) }
                            }
                            PrintArg::Str(s) => m.print_str(p.strings[*s].as_bytes(), e),
                        }
                        .map_err(|s| at(s, span))?;
                    }
                    if args.is_empty() {
                        m.print_str(b"", b'\n').map_err(|s| at(s, span))?;
                    }
                    0
                }
                Op::Assert(c) => {
                    if get!(*c) == 0 {
                        return Err(trap(Trap::AssertionFailed));
                    }
                    0
                }
            };
            if let Some(x) = d.result.expand() {
                v[x.as_u32() as usize] = Some(r);
            }
        }
        let edge = match &data.term {
            Terminator::Jump(e) => e,
            Terminator::Branch { cond, then, els } => {
                if get!(*cond) != 0 {
                    then
                } else {
                    els
                }
            }
            Terminator::Return(x) => {
                m.leave();
                return Ok(x.map_or(0, |x| get!(x)));
            }
            Terminator::Unreachable => panic!("unreachable reached"),
        };
        assert_eq!(edge.args.len(), f.blocks[edge.target].params.len(), "{} -> {}", block, edge.target);
        let args: Vec<i64> = edge.args.iter().map(|a| get!(*a)).collect();
        for (param, arg) in f.blocks[edge.target].params.iter().zip(args) {
            v[param.as_u32() as usize] = Some(arg);
        }
        block = edge.target;
    }
}
