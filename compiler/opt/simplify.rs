//! Algebraic simplification: replaces operations by cheaper ones that give the same for every operand.
//!
//! One sweep in reverse postorder, so that operands are simple before their users are looked at; each operation is looked
//! at together with those that define its operands, until no rule fits. All rules are exact in wrapping arithmetic, and
//! none drops an operation that may trap: `x / x` and `0 / x` stay. Constants go to the right of operations that commute
//! and of comparisons, so that equal ones look equal. Rules may leave dead operations behind for dead code elimination.
//!
//! ```text
//! %2 = int %1 + 3             %4 = int %1 + 5
//! %4 = int %2 + 2        →    %5 = int %1 << 3
//! %5 = int 8 * %1             branch %4 ? …
//! ```
//!
//! **In**: SSA. **Out**: SSA. Cost: linear; at most [`ROUNDS`] rules per operation.

use super::fuel::Fuel;
use super::renaming::Renaming;
use crate::analysis::cfg::Cfg;
use crate::ir::{Function, Inst, Op, Operand, Terminator, Type, Value};
use crate::semantics::{BinaryOp, CompareOp, Scalar, UnaryOp};
use cranelift_entity::{SecondaryMap, packed_option::PackedOption};

/// How many rules are applied to one operation at most.
const ROUNDS: usize = 16;

/// What becomes of an operation.
enum Outcome {
    /// It stays.
    Keep,
    /// It goes; its result is this.
    Is(Operand),
    /// It goes; it has no result.
    Gone,
    /// It becomes this.
    Becomes(Op),
    /// A new operation (of this type) stands before it, whose result is the first operand of what it becomes.
    Both(Op, Scalar, fn(Operand) -> Op),
}

/// Simplifies operations; gives the number of changes.
pub fn run(function: &mut Function, fuel: &mut Fuel) -> usize {
    let mut defs = Definitions::compute(function);
    let mut renaming = Renaming::new();
    let mut changes = 0;
    for block in Cfg::compute(function).rpo().iter().copied() {
        let insts = std::mem::take(&mut function.blocks[block].insts);
        let mut kept = Vec::with_capacity(insts.len());
        'insts: for inst in insts {
            function.insts[inst].op.for_each_operand_mut(|operand| *operand = renaming.resolve(*operand));
            for _ in 0..ROUNDS {
                let outcome = simplify(function, &defs, &function.insts[inst].op);
                if matches!(outcome, Outcome::Keep) || !fuel.take() {
                    break;
                }
                changes += 1;
                match outcome {
                    Outcome::Keep => unreachable!("it was just looked at"),
                    Outcome::Is(operand) => {
                        let result = function.insts[inst].result.expand().expect("what computes a value defines one");
                        renaming.replace(function, result, operand);
                        continue 'insts;
                    }
                    Outcome::Gone => continue 'insts,
                    Outcome::Becomes(op) => function.insts[inst].op = op,
                    Outcome::Both(first, ty, then) => {
                        let value = function.make_value(Type::Scalar(ty), None);
                        let span = function.insts[inst].span;
                        let before = function.make_inst(first, Some(value), span);
                        defs.inst[value] = before.into();
                        kept.push(before);
                        function.insts[inst].op = then(value.into());
                    }
                }
            }
            kept.push(inst);
        }
        function.blocks[block].insts = kept;
        changes += usize::from(simplify_branch(function, &defs, &mut renaming, block, fuel));
    }
    renaming.apply(function);
    changes
}

/// `branch !c ? a : b` becomes `branch c ? b : a`.
fn simplify_branch(
    function: &mut Function,
    defs: &Definitions,
    renaming: &mut Renaming,
    block: crate::ir::Block,
    fuel: &mut Fuel,
) -> bool {
    let Terminator::Branch { cond, .. } = function.blocks[block].term else { return false };
    let Some(Op::Unary { op: UnaryOp::Not, arg }) = defs.op(function, renaming.resolve(cond)) else { return false };
    let arg = *arg;
    if !fuel.take() {
        return false;
    }
    if let Terminator::Branch { cond, then, els } = &mut function.blocks[block].term {
        *cond = arg;
        std::mem::swap(then, els);
    }
    true
}

/// The instructions that define values.
struct Definitions {
    inst: SecondaryMap<Value, PackedOption<Inst>>,
}

impl Definitions {
    fn compute(function: &Function) -> Definitions {
        let mut inst: SecondaryMap<Value, PackedOption<Inst>> = SecondaryMap::with_capacity(function.values.len());
        for block in &function.layout {
            for id in &function.blocks[*block].insts {
                if let Some(result) = function.insts[*id].result.expand() {
                    inst[result] = (*id).into();
                }
            }
        }
        Definitions { inst }
    }

    /// The operation that defines an operand, if an instruction does.
    fn op<'f>(&self, function: &'f Function, operand: Operand) -> Option<&'f Op> {
        Some(&function.insts[self.inst[operand.value()?].expand()?].op)
    }

    /// The operands of the operand, if it is that binary operation.
    fn binary(&self, function: &Function, operand: Operand, wanted: BinaryOp) -> Option<[Operand; 2]> {
        match self.op(function, operand)? {
            Op::Binary { op, args, .. } if *op == wanted => Some(*args),
            _ => None,
        }
    }

    /// The same, if its right operand is a constant.
    fn binary_constant(&self, function: &Function, operand: Operand, wanted: BinaryOp) -> Option<(Operand, i64)> {
        let [a, b] = self.binary(function, operand, wanted)?;
        Some((a, b.constant()?))
    }

    /// The operand of the operand, if it is that unary operation.
    fn unary(&self, function: &Function, operand: Operand, wanted: UnaryOp) -> Option<Operand> {
        match self.op(function, operand)? {
            Op::Unary { op, arg } if *op == wanted => Some(*arg),
            _ => None,
        }
    }
}

fn int(op: BinaryOp, a: Operand, b: Operand) -> Outcome {
    Outcome::Becomes(Op::Binary { op, ty: Scalar::Int, args: [a, b] })
}

fn unary(op: UnaryOp, arg: Operand) -> Outcome {
    Outcome::Becomes(Op::Unary { op, arg })
}

/// What an operation may become by one rule.
fn simplify(function: &Function, defs: &Definitions, op: &Op) -> Outcome {
    match op {
        Op::Copy(source) => Outcome::Is(*source),
        Op::Binary { op, ty: Scalar::Int, args: [a, b] } => simplify_int(function, defs, *op, *a, *b),
        Op::Binary { op, ty: Scalar::Bool, args: [a, b] } => simplify_bool(function, defs, *op, *a, *b),
        Op::Compare { op, args: [a, b] } => simplify_compare(function, defs, *op, *a, *b),
        Op::Unary { op, arg } => simplify_unary(function, defs, *op, *arg),
        Op::Select { cond, args: [a, b] } => simplify_select(function, defs, *cond, *a, *b),
        Op::Len(array) => match defs.op(function, *array) {
            // It was not negative: the array was made.
            Some(Op::Array { len, .. }) => Outcome::Is(*len),
            _ => Outcome::Keep,
        },
        Op::Bounds { index, len } => match (index.constant(), len.constant()) {
            (Some(index), Some(len)) if 0 <= index && index < len => Outcome::Gone,
            (Some(_) | None, Some(_) | None) => Outcome::Keep,
        },
        Op::Assert(Operand::Bool(true)) => Outcome::Gone,
        Op::Assert(_)
        | Op::Parallel(_)
        | Op::Array { .. }
        | Op::Free(_)
        | Op::Load { .. }
        | Op::Store { .. }
        | Op::Call { .. }
        | Op::Read
        | Op::Eof
        | Op::Print(_) => Outcome::Keep,
    }
}

/// If the constant is a power of two, its exponent (63 for the smallest int).
fn exponent(c: i64) -> Option<i64> {
    (c.count_ones() == 1).then(|| i64::from(c.trailing_zeros()))
}

fn simplify_int(function: &Function, defs: &Definitions, op: BinaryOp, a: Operand, b: Operand) -> Outcome {
    if let (Some(x), Some(y)) = (a.constant(), b.constant()) {
        return op.eval(x, y).map_or(Outcome::Keep, |value| Outcome::Is(Operand::Int(value)));
    }
    if op.commutes() && a.constant().is_some() {
        return int(op, b, a);
    }
    let zero = Operand::Int(0);
    let right = b.constant();
    let both = |wanted| defs.binary(function, a, wanted);
    let inner = |wanted| defs.binary_constant(function, a, wanted);
    // `(x op c) op d` is `x op (c op d)` for the operations that associate.
    if let (Some(d), true) = (right, op.commutes())
        && let Some((x, c)) = inner(op)
        && let Some(folded) = op.eval(c, d)
    {
        return int(op, x, Operand::Int(folded));
    }
    match (op, right) {
        (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr, Some(0)) => {
            return Outcome::Is(a);
        }
        (BinaryOp::Mul | BinaryOp::Div, Some(1)) | (BinaryOp::And, Some(-1)) => return Outcome::Is(a),
        (BinaryOp::Mul | BinaryOp::And, Some(0)) | (BinaryOp::Rem, Some(1 | -1)) => return Outcome::Is(zero),
        (BinaryOp::Mul | BinaryOp::Div, Some(-1)) => return unary(UnaryOp::Neg, a),
        (BinaryOp::Or, Some(-1)) => return Outcome::Is(b),
        (BinaryOp::Xor, Some(-1)) => return unary(UnaryOp::BitNot, a),
        _ => {}
    }
    match op {
        BinaryOp::Add => {
            if let Some(y) = defs.unary(function, b, UnaryOp::Neg) {
                return int(BinaryOp::Sub, a, y);
            }
            if let Some(x) = defs.unary(function, a, UnaryOp::Neg) {
                return int(BinaryOp::Sub, b, x);
            }
            // `(x - b) + b` and `a + (y - a)`.
            if let Some([x, y]) = both(BinaryOp::Sub) {
                if y == b {
                    return Outcome::Is(x);
                }
                // `(c - y) + d` is `(c + d) - y`.
                if let (Some(c), Some(d)) = (x.constant(), right) {
                    return int(BinaryOp::Sub, Operand::Int(c.wrapping_add(d)), y);
                }
            }
            if let Some([y, x]) = defs.binary(function, b, BinaryOp::Sub)
                && x == a
            {
                return Outcome::Is(y);
            }
            if a == b {
                return int(BinaryOp::Shl, a, Operand::Int(1));
            }
        }
        BinaryOp::Sub => {
            if a == b {
                return Outcome::Is(zero);
            }
            if let Some(c) = right {
                return int(BinaryOp::Add, a, Operand::Int(c.wrapping_neg()));
            }
            if a == zero {
                return unary(UnaryOp::Neg, b);
            }
            if let Some(y) = defs.unary(function, b, UnaryOp::Neg) {
                return int(BinaryOp::Add, a, y);
            }
            if let Some([x, y]) = both(BinaryOp::Add) {
                if y == b {
                    return Outcome::Is(x);
                }
                if x == b {
                    return Outcome::Is(y);
                }
            }
            // `x - (x - y)`.
            if let Some([x, y]) = defs.binary(function, b, BinaryOp::Sub)
                && x == a
            {
                return Outcome::Is(y);
            }
            // `c - (x + d)` is `(c - d) - x`; `x - (x + d)` is `-d`.
            if let Some((x, d)) = defs.binary_constant(function, b, BinaryOp::Add) {
                if let Some(c) = a.constant() {
                    return int(BinaryOp::Sub, Operand::Int(c.wrapping_sub(d)), x);
                }
                if x == a {
                    return Outcome::Is(Operand::Int(d.wrapping_neg()));
                }
            }
        }
        BinaryOp::Mul => {
            if let Some(c) = right {
                if let Some((x, count)) = inner(BinaryOp::Shl) {
                    return int(BinaryOp::Mul, x, Operand::Int(c.wrapping_shl(count as u32)));
                }
                if let Some(x) = defs.unary(function, a, UnaryOp::Neg) {
                    return int(BinaryOp::Mul, x, Operand::Int(c.wrapping_neg()));
                }
                if let Some(exponent) = exponent(c) {
                    return int(BinaryOp::Shl, a, Operand::Int(exponent));
                }
            }
        }
        BinaryOp::Div => {
            // `(x / c) / d` is `x / (c * d)` where the product does not wrap.
            if let Some(d) = right.filter(|d| *d != 0)
                && let Some((x, c)) = inner(BinaryOp::Div)
                && c != 0
                && let Some(product) = c.checked_mul(d)
                && product != i64::MIN
                && c != i64::MIN
                && !(c == -1 || d == -1)
            {
                return int(BinaryOp::Div, x, Operand::Int(product));
            }
        }
        BinaryOp::Rem => {
            // The sign of the divisor does not matter.
            if let Some(d) = right.filter(|d| *d < 0 && *d != i64::MIN) {
                return int(BinaryOp::Rem, a, Operand::Int(-d));
            }
        }
        BinaryOp::And => {
            if a == b {
                return Outcome::Is(a);
            }
            if defs.unary(function, b, UnaryOp::BitNot) == Some(a)
                || defs.unary(function, a, UnaryOp::BitNot) == Some(b)
            {
                return Outcome::Is(zero);
            }
        }
        BinaryOp::Or => {
            if a == b {
                return Outcome::Is(a);
            }
        }
        BinaryOp::Xor => {
            if a == b {
                return Outcome::Is(zero);
            }
            if let Some([x, y]) = both(BinaryOp::Xor) {
                if y == b {
                    return Outcome::Is(x);
                }
                if x == b {
                    return Outcome::Is(y);
                }
            }
        }
        BinaryOp::Shl | BinaryOp::Shr => {
            if a == zero || (op == BinaryOp::Shr && a == Operand::Int(-1)) {
                return Outcome::Is(a);
            }
            if let Some(d) = right {
                if !(0..64).contains(&d) {
                    return int(op, a, Operand::Int(d & 63));
                }
                if let Some((x, c)) = inner(op) {
                    let count = (c & 63) + d;
                    return match op {
                        BinaryOp::Shr => int(op, x, Operand::Int(count.min(63))),
                        _ if count > 63 => Outcome::Is(zero),
                        _ => int(op, x, Operand::Int(count)),
                    };
                }
            }
        }
    }
    Outcome::Keep
}

fn simplify_bool(function: &Function, defs: &Definitions, op: BinaryOp, a: Operand, b: Operand) -> Outcome {
    if let (Operand::Bool(x), Operand::Bool(y)) = (a, b) {
        return op.eval_bool(x, y).map_or(Outcome::Keep, |value| Outcome::Is(Operand::Bool(value)));
    }
    if a.constant().is_some() {
        return Outcome::Becomes(Op::Binary { op, ty: Scalar::Bool, args: [b, a] });
    }
    let opposite = defs.unary(function, b, UnaryOp::Not) == Some(a) || defs.unary(function, a, UnaryOp::Not) == Some(b);
    match (op, b) {
        (BinaryOp::And, Operand::Bool(true)) | (BinaryOp::Or | BinaryOp::Xor, Operand::Bool(false)) => Outcome::Is(a),
        (BinaryOp::And, Operand::Bool(false)) | (BinaryOp::Or, Operand::Bool(true)) => Outcome::Is(b),
        (BinaryOp::Xor, Operand::Bool(true)) => unary(UnaryOp::Not, a),
        (BinaryOp::And | BinaryOp::Or, _) if a == b => Outcome::Is(a),
        (BinaryOp::Xor, _) if a == b => Outcome::Is(Operand::Bool(false)),
        (BinaryOp::And, _) if opposite => Outcome::Is(Operand::Bool(false)),
        (BinaryOp::Or | BinaryOp::Xor, _) if opposite => Outcome::Is(Operand::Bool(true)),
        _ => Outcome::Keep,
    }
}

fn simplify_compare(function: &Function, defs: &Definitions, op: CompareOp, a: Operand, b: Operand) -> Outcome {
    let known = |holds| Outcome::Is(Operand::Bool(holds));
    let becomes = |op, a, b| Outcome::Becomes(Op::Compare { op, args: [a, b] });
    if let (Some(x), Some(y)) = (a.constant(), b.constant()) {
        return known(op.eval(x, y));
    }
    if a == b {
        return known(op.eval(0, 0));
    }
    if a.constant().is_some() {
        return becomes(op.swap(), b, a);
    }
    if let Operand::Bool(constant) = b {
        // A bool equals `true` if it is true, and differs from `false` then too.
        return if (op == CompareOp::Eq) == constant { Outcome::Is(a) } else { unary(UnaryOp::Not, a) };
    }
    let equality = matches!(op, CompareOp::Eq | CompareOp::Ne);
    let Some(c) = b.constant() else {
        // `(x + c) == (y + c)` for any c.
        if equality
            && let (Some((x, c)), Some((y, d))) =
                (defs.binary_constant(function, a, BinaryOp::Add), defs.binary_constant(function, b, BinaryOp::Add))
            && c == d
        {
            return becomes(op, x, y);
        }
        return Outcome::Keep;
    };
    // An answer for 0 and one for 1: what is asked of `int(x)`.
    if let Some(x) = defs.unary(function, a, UnaryOp::IntOfBool) {
        return match (op.eval(0, c), op.eval(1, c)) {
            (false, true) => Outcome::Is(x),
            (true, false) => unary(UnaryOp::Not, x),
            (answer, _) => known(answer),
        };
    }
    match (op, c) {
        (CompareOp::Lt, i64::MIN) | (CompareOp::Gt, i64::MAX) => return known(false),
        (CompareOp::Ge, i64::MIN) | (CompareOp::Le, i64::MAX) => return known(true),
        // Comparisons with 0 are the cheapest.
        (CompareOp::Gt, -1) => return becomes(CompareOp::Ge, a, Operand::Int(0)),
        (CompareOp::Le, -1) => return becomes(CompareOp::Lt, a, Operand::Int(0)),
        (CompareOp::Ge, 1) => return becomes(CompareOp::Gt, a, Operand::Int(0)),
        (CompareOp::Lt, 1) => return becomes(CompareOp::Le, a, Operand::Int(0)),
        _ => {}
    }
    if !equality {
        return Outcome::Keep;
    }
    match defs.op(function, a) {
        Some(Op::Binary { op: BinaryOp::Add, args: [x, Operand::Int(d)], .. }) => {
            becomes(op, *x, Operand::Int(c.wrapping_sub(*d)))
        }
        Some(Op::Binary { op: BinaryOp::Xor, args: [x, Operand::Int(d)], .. }) => becomes(op, *x, Operand::Int(c ^ d)),
        Some(Op::Binary { op: BinaryOp::Sub | BinaryOp::Xor, ty: Scalar::Int, args: [x, y] }) if c == 0 => {
            becomes(op, *x, *y)
        }
        Some(Op::Unary { op: UnaryOp::Neg, arg }) => becomes(op, *arg, Operand::Int(c.wrapping_neg())),
        Some(Op::Unary { op: UnaryOp::BitNot, arg }) => becomes(op, *arg, Operand::Int(!c)),
        // `x % 2^k` is 0 exactly where the k low bits are.
        Some(Op::Binary { op: BinaryOp::Rem, args: [x, Operand::Int(d)], .. })
            if c == 0 && exponent(*d).is_some() && *d > 0 =>
        {
            let low_bits = Op::Binary { op: BinaryOp::And, ty: Scalar::Int, args: [*x, Operand::Int(*d - 1)] };
            let then: fn(Operand) -> Op = match op {
                CompareOp::Eq => |bits| Op::Compare { op: CompareOp::Eq, args: [bits, Operand::Int(0)] },
                _ => |bits| Op::Compare { op: CompareOp::Ne, args: [bits, Operand::Int(0)] },
            };
            Outcome::Both(low_bits, Scalar::Int, then)
        }
        _ => Outcome::Keep,
    }
}

fn simplify_unary(function: &Function, defs: &Definitions, op: UnaryOp, arg: Operand) -> Outcome {
    if let Some(constant) = arg.constant() {
        return Outcome::Is(Operand::from_constant(op.result(), op.eval(constant)));
    }
    match (op, defs.op(function, arg)) {
        (UnaryOp::Neg | UnaryOp::BitNot | UnaryOp::Not, Some(Op::Unary { op: inner, arg })) if op == *inner => {
            Outcome::Is(*arg)
        }
        (UnaryOp::Neg, Some(Op::Binary { op: BinaryOp::Sub, args: [x, y], .. })) => int(BinaryOp::Sub, *y, *x),
        (UnaryOp::Not, Some(Op::Compare { op, args })) => {
            Outcome::Becomes(Op::Compare { op: op.negate(), args: *args })
        }
        _ => Outcome::Keep,
    }
}

fn simplify_select(function: &Function, defs: &Definitions, cond: Operand, a: Operand, b: Operand) -> Outcome {
    if let Operand::Bool(cond) = cond {
        return Outcome::Is(if cond { a } else { b });
    }
    if a == b {
        return Outcome::Is(a);
    }
    if let Some(x) = defs.unary(function, cond, UnaryOp::Not) {
        return Outcome::Becomes(Op::Select { cond: x, args: [b, a] });
    }
    let bool = |op, x, y| Outcome::Becomes(Op::Binary { op, ty: Scalar::Bool, args: [x, y] });
    match (a, b) {
        (Operand::Bool(true), Operand::Bool(false)) => Outcome::Is(cond),
        (Operand::Bool(false), Operand::Bool(true)) => unary(UnaryOp::Not, cond),
        (Operand::Int(1), Operand::Int(0)) => unary(UnaryOp::IntOfBool, cond),
        (x, Operand::Bool(false)) => bool(BinaryOp::And, cond, x),
        (Operand::Bool(true), x) => bool(BinaryOp::Or, cond, x),
        // `c ? x + 1 : x` is `x + int(c)`, but that needs two operations in a row.
        _ => Outcome::Keep,
    }
}
