//! The one table of error codes: each with what it means and a smallest example. docs/errors.md lists the same, and a
//! test holds that each example yields its code. Codes are stable: one that falls out of use is not given again.
//!
//! `E01xx` characters and literals · `E02xx` syntax · `E03xx` names · `E04xx` types · `E05xx` control flow · `E06xx` arrays

use super::diagnostics::Code;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The code.
    pub code: Code,
    /// What it means, in one sentence.
    pub meaning: &'static str,
    /// A program that has exactly this mistake; empty where text cannot show it.
    pub example: &'static str,
}

macro_rules! codes {
    ($($name:ident = $number:literal, $meaning:literal, $example:literal;)*) => {
        $(#[doc = $meaning] pub const $name: Code = Code($number);)*

        /// The table, in the order of the codes.
        pub const TABLE: &[Entry] =
            &[$(Entry { code: $name, meaning: $meaning, example: $example }),*];
    };
}

codes! {
    UNEXPECTED_CHARACTER = 101, "A character that no token has.", "let a = 1 @ 2;";
    BAD_NUMBER = 102, "A number with a digit or letter that does not belong there.", "let a = 12abc;";
    NUMBER_TOO_LARGE = 103, "A number that 64 bits cannot hold.", "let a = 9223372036854775808;";
    BAD_CHARACTER = 104, "A character literal that is not exactly one character.", "let c = 'ab';";
    UNTERMINATED_STRING = 105, "A string that its line does not end.", "print(\"abc);";
    BAD_ESCAPE = 106, "An escape that does not exist or is out of range.", "print(\"a\\qb\");";
    UNTERMINATED_COMMENT = 107, "A comment that is never closed.", "let a = 1; /* and so on";
    FLOATING_POINT = 108, "A number with a fraction: Atlas has integers only.", "let a = 1.5;";
    INVALID_UTF8 = 109, "A source file that is not UTF-8.", "";
    SYNTAX = 201, "A token that cannot stand where it stands.", "let a = 1 2;";
    MISSING_SEMICOLON = 202, "A statement without its `;`.", "let a = 1\nlet b = 2;";
    UNCLOSED = 203, "A bracket that is never closed.", "if true { print(1);";
    UNEXPECTED_CLOSER = 204, "A closing bracket that closes nothing.", "print(1); }";
    NESTING_TOO_DEEP = 205, "Brackets or prefix operators nested too deep.", "";
    CHAINED_COMPARISON = 206, "Comparisons in a row: each takes two operands.", "print(1 < 2 < 3);";
    ASSIGNMENT_AS_EXPRESSION = 207, "An assignment where a value is needed.", "let a = 1; if (a = 2) { }";
    INCREMENT = 208, "`++` or `--`, which Atlas does not have.", "let a = 1; a++;";
    KEYWORD_AS_NAME = 209, "A keyword where a name is needed.", "let if = 1;";
    MISSING_INITIALIZER = 210, "A `let` without a value.", "let a: int;";
    NOT_A_STATEMENT = 211, "An expression that is no statement: its value would be lost.", "let a = 1; a + 1;";
    BAD_TARGET = 212, "An assignment to something that is no variable or element.", "1 = 2;";
    EMPTY_STATEMENT = 213, "A `;` with no statement before it.", "print(1);;";
    TRAILING_COMMA = 214, "A comma behind the last item of a list.", "print(1, 2,);";
    NESTED_FUNCTION = 215, "A function inside a block.", "if true { fn f() { } }";
    PARAMETER_WITHOUT_TYPE = 216, "A parameter without its type.", "fn f(a) { }";
    BRACES_REQUIRED = 217, "A body without braces.", "if (true) print(1);";
    UNKNOWN_TYPE = 218, "A type that does not exist.", "let a: float = 1;";
    MISPLACED_STRING = 219, "A string outside of `print`.", "let a = \"text\";";
    UNKNOWN_VARIABLE = 301, "A variable that does not exist.", "print(a);";
    UNKNOWN_FUNCTION = 302, "A function that does not exist.", "f();";
    DECLARED_TWICE = 303, "A second variable of one name in one block.", "let a = 1; let a = 2;";
    FUNCTION_TWICE = 304, "A second function of one name.", "fn f() { } fn f(a: int) { }";
    BUILT_IN_DEFINED = 305, "A function with the name of a built-in one.", "fn len() { }";
    OUT_OF_SCOPE = 306, "A variable used after its block has ended.", "{ let a = 1; } print(a);";
    USED_BEFORE_LET = 307, "A variable used before its `let` has ended.", "let a = a + 1;";
    VARIABLE_OF_THE_BODY = 308, "A variable of the program's body used in a function.", "let a = 1; fn f() { print(a); }";
    NOT_A_FUNCTION = 309, "A call of something that is no function.", "let f = 1; print(f(1));";
    FUNCTION_AS_VALUE = 310, "A function's name where a value is needed.", "fn f() { } print(f);";
    WRONG_TYPE = 401, "A value of another type than the place needs.", "let a: int = true;";
    WRONG_OPERAND = 402, "An operand of a type that the operator does not take.", "print(1 + true);";
    CONDITION_NOT_BOOL = 403, "A condition that is no `bool`.", "if 1 { }";
    ARGUMENT_COUNT = 404, "A call with too many or too few arguments.", "fn f(a: int) { } f(1, 2);";
    WRONG_ARGUMENT = 405, "An argument of another type than the parameter.", "fn f(a: int) { } f(true);";
    NO_VALUE = 406, "The value of a call that gives none.", "fn f() { } print(f());";
    NOT_AN_ARRAY = 407, "An index or `len` of something that is no array.", "let a = 1; print(a[0]);";
    OUTSIDE_A_LOOP = 501, "A `break` or `continue` outside of a loop.", "break;";
    MISSING_RETURN = 502, "A function that can end without returning its value.", "fn f() -> int { }";
    UNEXPECTED_VALUE = 503, "A `return` with a value where none is returned.", "fn f() { return 1; }";
    VALUE_NEEDED = 504, "A `return` without a value in a function that returns one.", "fn f() -> int { return; }";
    ARRAY_ASSIGNED = 601, "An assignment to an array variable: it names one array for life.", "let a = [1]; let b = [2]; a = b;";
    ARRAY_COPIED = 602, "A `let` that would give an array a second name.", "let a = [1]; let b = a;";
    ARRAY_RETURNED = 603, "A function that would return an array.", "fn f() -> [int] { let a = [1]; return a; }";
    ARRAY_STORED = 604, "An array inside another array.", "let a = [1]; let b = [a];";
    ARRAY_AS_OPERAND = 605, "An array where a single value is needed.", "let a = [1]; print(a == a);";
    ARRAY_WITHOUT_TYPE = 606, "An empty array whose element type nothing tells.", "let a = [];";
    ARRAY_LITERAL_MISPLACED = 607, "An array literal that is not the whole initializer of a `let`.", "print([1, 2][0]);";
}

/// The row of a code.
pub fn find(code: Code) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_rise() {
        assert!(TABLE.windows(2).all(|pair| pair[0].code < pair[1].code));
        assert_eq!(find(SYNTAX).map(|entry| entry.code), Some(Code(201)));
    }
}
