declare i32 @printf(i8*, ...)
declare i32 @dprintf(i32, i8*, ...)
declare i32 @putchar(i32)
declare i32 @getchar()
declare i64 @fwrite(i8*, i64, i64, i8*)
declare i32 @fflush(i8*)
declare void @exit(i32) noreturn
declare noalias i8* @malloc(i64)
declare noalias i8* @calloc(i64, i64)
declare void @free(i8*)
declare void @llvm.memset.p0i8.i64(i8*, i8, i64, i1)
@stdout = external global i8*
@text.int = private constant [7 x i8] c"%lld%c\00"
@text.string = private constant [5 x i8] c"%s%c\00"
@text.true = private constant [5 x i8] c"true\00"
@text.false = private constant [6 x i8] c"false\00"
@text.place = private constant [15 x i8] c" --> %s:%d:%d\0A\00"
@text.cannot = private constant [40 x i8] c"error: cannot write to standard output\0A\00"
@text.division = private constant [25 x i8] c"error: division by zero\0A\00"
@text.index = private constant [61 x i8] c"error: index %lld out of bounds for an array of length %lld\0A\00"
@text.negative = private constant [36 x i8] c"error: negative array length %lld%c\00"
@text.memory = private constant [22 x i8] c"error: out of memory\0A\00"
@text.assert = private constant [25 x i8] c"error: assertion failed\0A\00"
@text.none = private constant [27 x i8] c"error: no integer to read\0A\00"
@text.malformed = private constant [39 x i8] c"error: malformed integer in the input\0A\00"
@peeked = internal global i32 -2

; Run-time errors: the output so far first, then the message and the place, then status 101.
define internal void @finish_output() cold noinline {
  %flushed = call i32 @fflush(i8* null)
  %good = icmp eq i32 %flushed, 0
  br i1 %good, label %done, label %cannot
cannot:
  %text = bitcast [40 x i8]* @text.cannot to i8*
  %written = call i32 (i32, i8*, ...) @dprintf(i32 2, i8* %text)
  call void @exit(i32 101)
  unreachable
done:
  ret void
}
define internal void @fail_at(i32 %line, i32 %column) cold noinline noreturn {
  %text = bitcast [15 x i8]* @text.place to i8*
  %name = bitcast [SOURCE_BYTES x i8]* @source_name to i8*
  %written = call i32 (i32, i8*, ...) @dprintf(i32 2, i8* %text, i8* %name, i32 %line, i32 %column)
  call void @exit(i32 101)
  unreachable
}
define internal void @fail(i8* %text, i32 %line, i32 %column) cold noinline noreturn {
  call void @finish_output()
  %written = call i32 (i32, i8*, ...) @dprintf(i32 2, i8* %text)
  call void @fail_at(i32 %line, i32 %column)
  unreachable
}
define internal void @fail_division(i32 %line, i32 %column) cold noinline noreturn {
  %text = bitcast [25 x i8]* @text.division to i8*
  call void @fail(i8* %text, i32 %line, i32 %column)
  unreachable
}
define internal void @fail_index(i64 %index, i64 %count, i32 %line, i32 %column) cold noinline noreturn {
  call void @finish_output()
  %text = bitcast [61 x i8]* @text.index to i8*
  %written = call i32 (i32, i8*, ...) @dprintf(i32 2, i8* %text, i64 %index, i64 %count)
  call void @fail_at(i32 %line, i32 %column)
  unreachable
}
define internal void @assert(i1 %good, i32 %line, i32 %column) alwaysinline {
  br i1 %good, label %done, label %bad
bad:
  %text = bitcast [25 x i8]* @text.assert to i8*
  call void @fail(i8* %text, i32 %line, i32 %column)
  unreachable
done:
  ret void
}
define internal void @bounds(i64 %index, i64 %count, i32 %line, i32 %column) alwaysinline {
  %good = icmp ult i64 %index, %count
  br i1 %good, label %done, label %bad
bad:
  call void @fail_index(i64 %index, i64 %count, i32 %line, i32 %column)
  unreachable
done:
  ret void
}

; Division: by zero an error; the smallest int by -1 wraps.
define internal i64 @quotient(i64 %a, i64 %b, i32 %line, i32 %column) alwaysinline {
  %zero = icmp eq i64 %b, 0
  br i1 %zero, label %bad, label %good
bad:
  call void @fail_division(i32 %line, i32 %column)
  unreachable
good:
  %minus = icmp eq i64 %b, -1
  br i1 %minus, label %negate, label %divide
negate:
  %negated = sub i64 0, %a
  ret i64 %negated
divide:
  %result = sdiv i64 %a, %b
  ret i64 %result
}
define internal i64 @remainder_of(i64 %a, i64 %b, i32 %line, i32 %column) alwaysinline {
  %zero = icmp eq i64 %b, 0
  br i1 %zero, label %bad, label %good
bad:
  call void @fail_division(i32 %line, i32 %column)
  unreachable
good:
  %minus = icmp eq i64 %b, -1
  br i1 %minus, label %none, label %divide
none:
  ret i64 0
divide:
  %result = srem i64 %a, %b
  ret i64 %result
}

; An array is the address of its first element; its length stands in the eight bytes before.
define internal i64* @new_array(i64 %count, i64 %size, i1 %zeroed, i32 %line, i32 %column) noinline {
  %negative = icmp slt i64 %count, 0
  br i1 %negative, label %bad, label %sized
bad:
  call void @finish_output()
  %text = bitcast [36 x i8]* @text.negative to i8*
  %written = call i32 (i32, i8*, ...) @dprintf(i32 2, i8* %text, i64 %count, i32 10)
  call void @fail_at(i32 %line, i32 %column)
  unreachable
sized:
  %most = udiv i64 9223372036854775799, %size
  %fits = icmp ule i64 %count, %most
  br i1 %fits, label %allocate, label %none
allocate:
  %payload = mul i64 %count, %size
  %bytes = add i64 %payload, 8
  br i1 %zeroed, label %clear, label %raw
clear:
  %cleared = call i8* @calloc(i64 1, i64 %bytes)
  br label %got
raw:
  %uncleared = call i8* @malloc(i64 %bytes)
  br label %got
got:
  %memory = phi i8* [ %cleared, %clear ], [ %uncleared, %raw ]
  %failed = icmp eq i8* %memory, null
  br i1 %failed, label %none, label %good
none:
  %out = bitcast [22 x i8]* @text.memory to i8*
  call void @fail(i8* %out, i32 %line, i32 %column)
  unreachable
good:
  %words = bitcast i8* %memory to i64*
  store i64 %count, i64* %words
  %first = getelementptr i64, i64* %words, i64 1
  ret i64* %first
}
define internal i64* @array_int(i64 %count, i64 %value, i32 %line, i32 %column) {
  %zero = icmp eq i64 %value, 0
  %array = call i64* @new_array(i64 %count, i64 8, i1 %zero, i32 %line, i32 %column)
  br i1 %zero, label %done, label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %fill ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %fill, label %done
fill:
  %place = getelementptr i64, i64* %array, i64 %i
  store i64 %value, i64* %place
  %next = add i64 %i, 1
  br label %test
done:
  ret i64* %array
}
define internal i8* @array_bool(i64 %count, i1 %value, i32 %line, i32 %column) {
  %zero = xor i1 %value, true
  %words = call i64* @new_array(i64 %count, i64 1, i1 %zero, i32 %line, i32 %column)
  %array = bitcast i64* %words to i8*
  br i1 %value, label %fill, label %done
fill:
  call void @llvm.memset.p0i8.i64(i8* %array, i8 1, i64 %count, i1 false)
  br label %done
done:
  ret i8* %array
}
define internal void @free_int(i64* %array) {
  %start = getelementptr i64, i64* %array, i64 -1
  %memory = bitcast i64* %start to i8*
  call void @free(i8* %memory)
  ret void
}
define internal void @free_bool(i8* %array) {
  %memory = getelementptr i8, i8* %array, i64 -8
  call void @free(i8* %memory)
  ret void
}
define internal i64 @length_int(i64* %array) alwaysinline {
  %place = getelementptr i64, i64* %array, i64 -1
  %count = load i64, i64* %place
  ret i64 %count
}
define internal i64 @length_bool(i8* %array) alwaysinline {
  %words = bitcast i8* %array to i64*
  %place = getelementptr i64, i64* %words, i64 -1
  %count = load i64, i64* %place
  ret i64 %count
}

; Output.
define internal void @put_int(i64 %value, i32 %end) {
  %text = bitcast [7 x i8]* @text.int to i8*
  %written = call i32 (i8*, ...) @printf(i8* %text, i64 %value, i32 %end)
  ret void
}
define internal void @put_bool(i1 %value, i32 %end) {
  %yes = bitcast [5 x i8]* @text.true to i8*
  %no = bitcast [6 x i8]* @text.false to i8*
  %word = select i1 %value, i8* %yes, i8* %no
  %text = bitcast [5 x i8]* @text.string to i8*
  %written = call i32 (i8*, ...) @printf(i8* %text, i8* %word, i32 %end)
  ret void
}
define internal void @put_text(i8* %text, i64 %bytes, i32 %end) {
  %stream = load i8*, i8** @stdout
  %written = call i64 @fwrite(i8* %text, i64 1, i64 %bytes, i8* %stream)
  %put = call i32 @putchar(i32 %end)
  ret void
}

; Input: integers separated by white space; one byte may have been peeked at.
define internal i1 @is_space(i32 %c) {
  %space = icmp eq i32 %c, 32
  %from_tab = sub i32 %c, 9
  %control = icmp ult i32 %from_tab, 5
  %either = or i1 %space, %control
  ret i1 %either
}
define internal i32 @next_byte() {
  %peek = load i32, i32* @peeked
  %none = icmp eq i32 %peek, -2
  br i1 %none, label %fresh, label %kept
fresh:
  %c = call i32 @getchar()
  ret i32 %c
kept:
  store i32 -2, i32* @peeked
  ret i32 %peek
}
define internal i32 @skip_space() {
  br label %again
again:
  %c = call i32 @next_byte()
  %space = call i1 @is_space(i32 %c)
  br i1 %space, label %again, label %done
done:
  ret i32 %c
}
define internal i1 @at_end() {
  %c = call i32 @skip_space()
  store i32 %c, i32* @peeked
  %end = icmp eq i32 %c, -1
  ret i1 %end
}
define internal i64 @read_int(i32 %line, i32 %column) {
  %first = call i32 @skip_space()
  %end = icmp eq i32 %first, -1
  br i1 %end, label %none, label %token
none:
  %text.none = bitcast [27 x i8]* @text.none to i8*
  call void @fail(i8* %text.none, i32 %line, i32 %column)
  unreachable
token:
  %minus = icmp eq i32 %first, 45
  %plus = icmp eq i32 %first, 43
  %sign = or i1 %minus, %plus
  %more = zext i1 %minus to i64
  %limit = add i64 9223372036854775807, %more
  br i1 %sign, label %signed, label %digits
signed:
  %second = call i32 @next_byte()
  br label %digits
digits:
  %c = phi i32 [ %first, %token ], [ %second, %signed ], [ %next, %digit ]
  %value = phi i64 [ 0, %token ], [ 0, %signed ], [ %longer, %digit ]
  %good = phi i1 [ false, %token ], [ false, %signed ], [ true, %digit ]
  %fits = phi i1 [ true, %token ], [ true, %signed ], [ %still, %digit ]
  %from_zero = sub i32 %c, 48
  %is_digit = icmp ult i32 %from_zero, 10
  br i1 %is_digit, label %digit, label %ended
digit:
  %d = zext i32 %from_zero to i64
  %room = sub i64 %limit, %d
  %most = udiv i64 %room, 10
  %small = icmp ule i64 %value, %most
  %still = and i1 %fits, %small
  %shifted = mul i64 %value, 10
  %longer = add i64 %shifted, %d
  %next = call i32 @next_byte()
  br label %digits
ended:
  %space = call i1 @is_space(i32 %c)
  %last = icmp eq i32 %c, -1
  %clean = or i1 %space, %last
  %number = and i1 %good, %fits
  %fine = and i1 %clean, %number
  br i1 %fine, label %done, label %bad
bad:
  %text.malformed = bitcast [39 x i8]* @text.malformed to i8*
  call void @fail(i8* %text.malformed, i32 %line, i32 %column)
  unreachable
done:
  %negated = sub i64 0, %value
  %result = select i1 %minus, i64 %negated, i64 %value
  ret i64 %result
}

