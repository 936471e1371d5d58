//! MPS, LP, gzip, and a solve as text: what is written reads back, and what is wrong is named by its place.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rota_solvers::exchange::{answer_request, read_answer, read_request, write_answer, write_request};
use rota_solvers::files::{BytesError, Format, model_from_bytes};
use rota_solvers::{
    Highs, Kind, Limits, Model, Sense, SolveStatus, Solver, Start, read_lp, read_model, read_mps, write_lp,
    write_model, write_mps,
};

fn random_model(seed: u64) -> Model {
    let mut random = StdRng::seed_from_u64(seed);
    let mut model = Model::new(if random.random_bool(0.5) { Sense::Minimize } else { Sense::Maximize });
    model.set_name("random model");
    model.set_offset(random.random_range(-1.0..1.0)).unwrap();
    let infinite = f64::INFINITY;
    for i in 0..random.random_range(1..8) {
        let a: f64 = random.random_range(-5.0..5.0);
        let (lower, upper) = match random.random_range(0..7) {
            0 => (-infinite, infinite),
            1 => (-infinite, a),
            2 => (a, infinite),
            3 => (a, a),
            4 => (0.0, infinite),
            5 => (0.0, 1.0),
            _ => (a, a + random.random_range(0.0..3.0)),
        };
        let kind = if random.random_bool(0.5) { Kind::Integer } else { Kind::Continuous };
        let x = model.variable(&format!("x{i}"), kind, lower, upper).unwrap();
        if random.random_bool(0.7) {
            model.set_cost(x, random.random_range(-1.0..1.0)).unwrap();
        }
    }
    for r in 0..random.random_range(0..6) {
        let terms: Vec<_> = model
            .variables()
            .filter(|_| random.random_bool(0.6))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|x| (x, random.random_range(-1e6..1e6)))
            .collect();
        let a: f64 = random.random_range(-5.0..5.0);
        let (lower, upper) = match random.random_range(0..5) {
            0 => (-infinite, infinite),
            1 => (-infinite, a),
            2 => (a, infinite),
            3 => (a, a),
            _ => (a, a + 0.3),
        };
        model.row(&format!("row{r}"), lower, upper, terms).unwrap();
    }
    model
}

/// LP text orders variables by first mention: compare by name.
fn by_name(model: &Model) -> Vec<String> {
    let mut facts: Vec<String> = model
        .variables()
        .map(|x| {
            format!("{} {:?} {:?} {}", model.variable_name(x), model.kind(x), model.range(x), model.cost(x))
        })
        .collect();
    for row in model.rows() {
        let mut terms: Vec<String> =
            model.terms(row).map(|(x, value)| format!("{} {value}", model.variable_name(x))).collect();
        terms.sort();
        facts.push(format!("{} {:?} {terms:?}", model.row_name(row), model.row_range(row)));
    }
    facts.push(format!("{:?} {}", model.sense(), model.offset()));
    facts.sort();
    facts
}

#[test]
fn mps_reads_back_equal() {
    for seed in 0..500 {
        let model = random_model(seed);
        let text = write_mps(&model);
        assert_eq!(read_mps(&text).as_ref(), Ok(&model), "seed {seed}\n{text}");
    }
}

#[test]
fn lp_reads_back_equal() {
    for seed in 0..500 {
        let model = random_model(seed);
        let text = write_lp(&model).unwrap();
        assert_eq!(text, model.to_string());
        let back = read_lp(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        assert_eq!(by_name(&back), by_name(&model), "seed {seed}\n{text}");
    }
}

#[test]
fn files_carry_models_in_every_format() {
    let model = random_model(1);
    for ending in ["mps", "lp", "mps.gz", "lp.gz"] {
        let path = std::env::temp_dir().join(format!("rota-solvers-{}.{ending}", std::process::id()));
        write_model(&path, &model).unwrap();
        assert_eq!(by_name(&read_model(&path).unwrap()), by_name(&model), "{ending}");
        std::fs::remove_file(&path).unwrap();
    }
    let error = read_model(std::path::Path::new("model.txt")).unwrap_err();
    assert_eq!(error.to_string(), "model.txt: the name ends neither in .mps nor in .lp (or those with .gz)");
}

#[test]
fn damaged_bytes_are_named() {
    let error = model_from_bytes(b"NAME\nRO\xffWS\n", Format::Mps).unwrap_err();
    assert_eq!(error, BytesError::NotText { at: 7 });
    let error = model_from_bytes(&[0x1f, 0x8b, 8, 0, 1, 2], Format::Mps).unwrap_err();
    assert!(matches!(error, BytesError::Gzip { .. }), "{error}");
}

/// The message of a text that must not be read.
fn mps_error(text: &str) -> String {
    read_mps(text).unwrap_err().to_string()
}

#[test]
fn mps_errors_name_line_column_value_and_expectation() {
    let text = "NAME t\nROWS\n N  obj\n L  c1\nCOLUMNS\n    x  c1  1\nRHS\n    R  c1  4\nENDATA\n";
    assert!(read_mps(text).is_ok());
    let cases = [
        (" L  c1", " X  c1", "line 4, column 2: found \"X\", expected a row type: N, E, L or G"),
        ("    x  c1  1", "    x  c2  1", "line 6, column 8: found \"c2\", expected a row named in ROWS"),
        ("    x  c1  1", "    x  c1  abc", "line 6, column 12: found \"abc\", expected a number"),
        ("    x  c1  1", "    x  c1  NaN", "line 6, column 12: found \"NaN\", expected a number"),
        ("    x  c1  1", "    x  c1  inf", "line 6, column 12: found \"inf\", expected a finite number"),
        (" L  c1", " L  c1\n L  c1", "line 5, column 5: found \"c1\", expected a row name that is not taken"),
        ("ENDATA", "", "line 10, column 1: found \"\", expected ENDATA before the end of the text"),
        (
            "RHS",
            "QUADOBJ",
            "line 7, column 1: found \"QUADOBJ\", expected a section of a linear model (NAME, OBJSENSE, ROWS, \
             COLUMNS, RHS, RANGES, BOUNDS, ENDATA)",
        ),
    ];
    for (from, to, expected) in cases {
        assert_eq!(mps_error(&text.replacen(from, to, 1)), expected);
    }
    let bounds = text.replace("ENDATA", "BOUNDS\n LO B  x  5\n UP B  x  3\nENDATA");
    assert_eq!(
        mps_error(&bounds),
        "line 11, column 1: found \"x\", expected variable x: lower bound 5 is above upper bound 3"
    );
}

#[test]
fn fixed_mps_may_have_blanks_in_names_and_leave_set_names_out() {
    let text = "\
NAME          SPACES
ROWS
 N  COST
 L  LIM ONE
COLUMNS
    X ONE     COST               1.0   LIM ONE            2.0
RHS
              LIM ONE            4.0
BOUNDS
 UP           X ONE              4.0
ENDATA
";
    let model = read_mps(text).unwrap();
    let x = model.find_variable("X_ONE").unwrap();
    assert_eq!((model.cost(x), model.range(x).upper), (1.0, 4.0));
    let row = model.find_row("LIM_ONE").unwrap();
    assert_eq!((model.row_range(row).upper, model.terms(row).next()), (4.0, Some((x, 2.0))));
}

#[test]
fn mps_conventions_hold() {
    let text = "\
* a comment
NAME conventions
OBJSENSE MAX
ROWS
 N obj
 E e1
 E e2
 G g
 L l
 N free
COLUMNS
 M1 'MARKER' 'INTORG'
 b obj 1 e1 1
 n obj 1 e2 1
 M2 'MARKER' 'INTEND'
 neg g 1 l 1
 free_x free 1
RHS
 obj -7
 e1 4 e2 4
 g 1
 l 9
RANGES
 R e1 2 e2 -2
 R g 3 l 4
BOUNDS
 UP n 8
 UP B neg -1
 FR free_x
ENDATA
";
    let model = read_mps(text).unwrap();
    let range = |name: &str| {
        let range = model.range(model.find_variable(name).unwrap());
        (range.lower, range.upper)
    };
    let row = |name: &str| {
        let range = model.row_range(model.find_row(name).unwrap());
        (range.lower, range.upper)
    };
    assert_eq!((model.sense(), model.offset()), (Sense::Maximize, 7.0));
    assert_eq!(range("b"), (0.0, 1.0));
    assert_eq!(range("n"), (0.0, 8.0));
    assert_eq!(range("neg"), (f64::NEG_INFINITY, -1.0));
    assert_eq!((row("e1"), row("e2"), row("g"), row("l")), ((4.0, 6.0), (2.0, 4.0), (1.0, 4.0), (5.0, 9.0)));
    assert_eq!(row("free"), (f64::NEG_INFINITY, f64::INFINITY));
}

#[test]
fn lp_conventions_hold() {
    let text = "\
\\ a comment
MAXIMIZE
 profit: 3x + 2 y - -1 z + 4
   + 1e1 w
SUCH THAT
 c1: x + y
   <= 4
 -2 <= x - y <= 2
 c3: 3 >= z
Bounds
 x <= 3
 y free
 -inf <= z <= 5
 1 <= w <= 2
INTEGERS
 x
binaries b
END
";
    let model = read_lp(text).unwrap();
    let variable = |name: &str| model.find_variable(name).unwrap();
    let range = |name: &str| (model.range(variable(name)).lower, model.range(variable(name)).upper);
    assert_eq!(model.offset(), 4.0);
    assert_eq!((model.cost(variable("z")), model.cost(variable("w"))), (1.0, 10.0));
    assert_eq!(range("x"), (0.0, 3.0));
    assert_eq!(range("y"), (f64::NEG_INFINITY, f64::INFINITY));
    assert_eq!(range("z"), (f64::NEG_INFINITY, 5.0));
    assert_eq!(range("b"), (0.0, 1.0));
    assert_eq!(model.kind(variable("x")), Kind::Integer);
    let rows: Vec<_> = model.rows().map(|r| (model.row_name(r), model.row_range(r).lower)).collect();
    assert_eq!(rows, [("c1", f64::NEG_INFINITY), ("r1", -2.0), ("c3", f64::NEG_INFINITY)]);
}

#[test]
fn rows_without_a_label_get_a_name_that_is_free() {
    let model = read_lp("min\n x\nst\n r1: x >= 1\n x >= 2\n x >= 3\nend").unwrap();
    let names: Vec<_> = model.rows().map(|row| model.row_name(row)).collect();
    assert_eq!(names, ["r1", "r1_", "r2"]);
}

#[test]
fn very_long_lines_are_read_in_one_pass() {
    let terms: Vec<String> = (0..200_000).map(|i| format!("2 é{i}")).collect();
    let text = format!("min\n {}\nend", terms.join(" + "));
    assert_eq!(read_lp(&text).unwrap().n_variables(), 200_000);
    let text = format!("NAME\nROWS\n N é {}\nENDATA", "x ".repeat(1_000_000));
    assert!(mps_error(&text).starts_with("line 3, column 14: found \"x\""), "{}", mps_error(&text));
}

#[test]
fn lp_errors_name_line_column_value_and_expectation() {
    let cases = [
        ("max", "line 2, column 1: found \"\", expected the word End before the end of the text"),
        ("x + y", "line 1, column 1: found \"x\", expected Minimize or Maximize"),
        (
            "max\n x + +\nst\nend",
            "line 3, column 1: found \"st\", expected a number or a variable after the sign",
        ),
        ("max\n x\nst\n c: x <= y\nend", "line 4, column 10: found \"y\", expected a number"),
        ("max\n x\nst\n c: x 5\nend", "line 5, column 1: found \"end\", expected <=, >= or ="),
        (
            "max\n x^2\nend",
            "line 2, column 3: found \"^\", expected a linear term (quadratic terms are not supported)",
        ),
        (
            "max\n x\nst\n c: x <= 1\n c: x <= 2\nend",
            "line 5, column 2: found \"c\", expected row c: the name is taken",
        ),
        ("max\n inf x\nend", "line 2, column 2: found \"inf\", expected a finite number"),
        (
            "max\n x\nbounds\n 5 <= x <= 3\nend",
            "line 4, column 2: found \"5\", expected variable x: lower bound 5 is above upper bound 3",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(read_lp(text).unwrap_err().to_string(), expected, "{text}");
    }
}

#[test]
fn names_lp_cannot_say_are_refused_in_files_and_bent_for_eyes() {
    let mut model = Model::new(Sense::Minimize);
    let x = model.binary("x[3,a]").unwrap();
    model.set_cost(x, 1.0).unwrap();
    assert_eq!(
        write_lp(&model).unwrap_err().to_string(),
        "variable x[3,a]: not writable as LP text, it has characters that mean something else"
    );
    assert!(model.to_string().contains("_x_3,a_"));
    assert_eq!(read_mps(&write_mps(&model)), Ok(model));
}

#[test]
fn a_solve_travels_as_text() {
    for seed in 0..100 {
        let model = random_model(seed);
        let limits = Limits { nodes: 77, gap: 0.125, seed: 3, ..Limits::default() };
        let start = vec![0.1; model.n_variables()];
        let request = write_request(&model, &limits, Start::Values(&start));
        let back = read_request(&request).unwrap();
        assert_eq!((&back.model, &back.limits, &back.start), (&model, &limits, &start), "seed {seed}");
        let answer = answer_request(&write_request(&model, &limits, Start::Cold), &mut Highs);
        let direct = Highs.solve(&model, &limits, Start::Cold);
        let there = read_answer(&model, &answer).unwrap();
        assert_eq!((&there.status, &there.values), (&direct.status, &direct.values), "seed {seed}");
        assert_eq!(there.objective, direct.objective, "seed {seed}");
    }
}

#[test]
fn a_cut_answer_and_a_wrong_one_are_noticed() {
    let mut model = Model::new(Sense::Maximize);
    let x = model.binary("x").unwrap();
    model.set_cost(x, 1.0).unwrap();
    let text = write_answer(&Highs.solve(&model, &Limits::default(), Start::Cold));
    for length in 0..text.len() - 1 {
        assert!(read_answer(&model, &text[..length]).is_err(), "{length} of {} bytes", text.len());
    }
    let lie = text.replace("\n1 \n", "\n2 \n");
    let solution = read_answer(&model, &lie).unwrap();
    assert!(matches!(solution.status, SolveStatus::Failed { .. }), "{}", solution.status);
    let error = answer_request("nonsense", &mut Highs);
    assert!(error.contains("status failed\nreason request: line 1, column 1"), "{error}");
}
