#include "framework/graph/op_schema.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using testing_support::Text;

OpSchema Parsed(std::string_view text) {
  auto s = ParseOpSchema(text);
  EXPECT_TRUE(s.ok()) << text << "\n" << s.status();
  return s.ok() ? *std::move(s) : OpSchema();
}

// Returns the message of the refusal, from "column" on.
std::string Refusal(std::string_view text, absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  auto s = ParseOpSchema(text);
  EXPECT_FALSE(s.ok()) << text;
  if (s.ok()) return "";
  std::string message = Text(s.status());
  EXPECT_EQ(s.status().code(), code) << message;
  size_t column = message.find("column");
  return column == message.npos ? message : message.substr(column);
}

TEST(OpSchemaTest, ReadsArgumentsTypesAndAttributes) {
  OpSchema s = Parsed("Gather(params: T, indices: I) -> (output: T); T: type; I: {int32, int64}; validate_indices: bool = true");
  EXPECT_EQ(s.name, "Gather");
  ASSERT_EQ(s.inputs.size(), 2u);
  EXPECT_EQ(s.inputs[0].name, "params");
  EXPECT_EQ(s.inputs[0].type_attr, "T");
  EXPECT_FALSE(s.inputs[0].has_dims);
  ASSERT_EQ(s.outputs.size(), 1u);
  EXPECT_EQ(s.outputs[0].type_attr, "T");
  ASSERT_EQ(s.attrs.size(), 3u);
  EXPECT_EQ(s.attrs[0].kind, uint32_t{TW_ATTR_TYPE});
  EXPECT_THAT(s.attrs[0].types, IsEmpty());
  EXPECT_THAT(s.attrs[1].types, ElementsAre(TW_INT32, TW_INT64));
  EXPECT_FALSE(s.attrs[1].has_default);
  EXPECT_TRUE(s.attrs[2].default_value == AttrValue::Bool(true));
  EXPECT_FALSE(s.stateful);
  EXPECT_THAT(s.shape_only, ElementsAre(0, 0));
  EXPECT_EQ(s.text.substr(0, 7), "Gather(");
}

TEST(OpSchemaTest, ReadsAnOpWithoutArguments) {
  OpSchema s = Parsed("NoOp() -> ()");
  EXPECT_THAT(s.inputs, IsEmpty());
  EXPECT_THAT(s.outputs, IsEmpty());
}

TEST(OpSchemaTest, ReadsEveryKindOfDimension) {
  OpSchema s = Parsed("F(x: float[3, n, *batch, _], s: int32 [ ]) -> (y: float)");
  ASSERT_TRUE(s.inputs[0].has_dims);
  const auto& d = s.inputs[0].dims;
  ASSERT_EQ(d.size(), 4u);
  EXPECT_EQ(d[0].kind, DimPattern::kSize);
  EXPECT_EQ(d[0].size, 3);
  EXPECT_EQ(d[1].kind, DimPattern::kName);
  EXPECT_EQ(d[1].name, "n");
  EXPECT_EQ(d[2].kind, DimPattern::kStar);
  EXPECT_EQ(d[2].name, "batch");
  EXPECT_EQ(d[3].kind, DimPattern::kAny);
  EXPECT_TRUE(s.inputs[1].has_dims);
  EXPECT_THAT(s.inputs[1].dims, IsEmpty());
  EXPECT_FALSE(s.outputs[0].has_dims);
}

TEST(OpSchemaTest, ReadsVariadicListAndReferenceArguments) {
  OpSchema s = Parsed(
      "F(v: ref(T), many: T * N, mixed: Tin, h: resource) -> (out: Tout); T: type; N: int >= 1; Tin: list(type) >= 1; Tout: list(type); "
      "runs_as Ns.G");
  EXPECT_EQ(s.runs_as, "Ns.G");
  EXPECT_TRUE(s.inputs[0].ref);
  EXPECT_EQ(s.inputs[0].type_attr, "T");
  EXPECT_EQ(s.inputs[1].number_attr, "N");
  EXPECT_EQ(s.inputs[2].list_attr, "Tin");
  EXPECT_EQ(s.inputs[3].dtype, uint32_t{TW_RESOURCE});
  EXPECT_EQ(s.outputs[0].list_attr, "Tout");
  EXPECT_TRUE(s.attrs[1].has_min);
  EXPECT_EQ(s.attrs[1].min, 1);
  EXPECT_TRUE(s.attrs[2].list);
}

TEST(OpSchemaTest, RoundsDefaultsAsTheyAreStored) {
  OpSchema s = Parsed("F() -> (); f: float = 0.2; lf: list(float) = [0.1]");
  EXPECT_EQ(s.attrs[0].default_value.floats()[0], double(0.2f));
  EXPECT_EQ(s.attrs[1].default_value.floats()[0], double(0.1f));
}

TEST(OpSchemaTest, ReadsDefaultsOfEveryKind) {
  OpSchema s = Parsed(
      "F() -> (); i: int = -7; f: float = 1e-3; inf: float = -inf; b: bool = false; s: string = \"a \\\"b\\\"\\n\"; t: type = half; "
      "sh: shape = [2, ?, -1]; un: shape = unknown; sc: shape = []; fn: func = \"g\"; "
      "li: list(int) >= 2 = [1, -2]; lf: list(float) = [0.5]; lb: list(bool) = [true, false]; ls: list(string) = [\"x\", \"y\"]; "
      "lt: list(type) = [float, int32]; lsh: list(shape) = [[1], unknown]; empty: list(tensor) = []; "
      "pick: {\"SAME\", \"VALID\"} = \"VALID\"; lp: list({\"a\", \"b\"}) = [\"b\"]; lc: list({float, half}) = [half]; late: int = 3 since "
      "2");
  auto value = [&](std::string_view name) { return s.attrs[size_t(s.FindAttr(name))].default_value; };
  EXPECT_TRUE(value("i") == AttrValue::Int(-7));
  EXPECT_TRUE(value("f") == AttrValue::Float(1e-3));
  EXPECT_TRUE(value("inf") == AttrValue::Float(-INFINITY));
  EXPECT_TRUE(value("b") == AttrValue::Bool(false));
  EXPECT_TRUE(value("s") == AttrValue::String("a \"b\"\n"));
  EXPECT_TRUE(value("t") == AttrValue::Type(TW_HALF));
  EXPECT_TRUE(value("sh") == AttrValue::OfShape(Shape({2, -1, -1})));
  EXPECT_TRUE(value("un") == AttrValue::OfShape(Shape()));
  EXPECT_TRUE(value("sc") == AttrValue::OfShape(Shape(std::initializer_list<int64_t>{})));
  EXPECT_TRUE(value("fn") == AttrValue::Func("g"));
  EXPECT_TRUE(value("li") == AttrValue::Ints({1, -2}));
  EXPECT_TRUE(value("lf") == AttrValue::Floats({0.5}));
  EXPECT_TRUE(value("lb") == AttrValue::Bools({1, 0}));
  EXPECT_TRUE(value("ls") == AttrValue::Strings({"x", "y"}));
  EXPECT_TRUE(value("lt") == AttrValue::Types({TW_FLOAT, TW_INT32}));
  EXPECT_TRUE(value("lsh") == AttrValue::Shapes({Shape({1}), Shape()}));
  EXPECT_TRUE(value("empty") == AttrValue::Tensors({}));
  EXPECT_TRUE(value("pick") == AttrValue::String("VALID"));
  EXPECT_TRUE(value("lp") == AttrValue::Strings({"b"}));
  EXPECT_TRUE(value("lc") == AttrValue::Types({TW_HALF}));
  EXPECT_EQ(s.attrs[size_t(s.FindAttr("late"))].since, 2u);
}

TEST(OpSchemaTest, ReadsEveryClause) {
  OpSchema s = Parsed(
      "F(x: float, y: float) -> (z: float); stateful; once; commutative; shape_only y x; role add; no_gradient \"it has no slope\"; doc "
      "\"adds; twice\"");
  EXPECT_TRUE(s.stateful);
  EXPECT_TRUE(s.once);
  EXPECT_TRUE(s.commutative);
  EXPECT_THAT(s.shape_only, ElementsAre(1, 1));
  EXPECT_EQ(s.role, "add");
  EXPECT_EQ(s.no_gradient, "it has no slope");
  EXPECT_EQ(s.doc, "adds; twice");
}

TEST(OpSchemaTest, KnowsWhatHandlesLeadTo) {
  OpSchema s = Parsed(
      "F(a: resource[], b: resource[] * N, x: float) -> (c: resource[]); N: int >= 1; resource a org.x-y.one c org.two; unopened b; "
      "stateful");
  EXPECT_EQ(s.inputs[0].resource, "org.x-y.one");
  EXPECT_EQ(s.inputs[1].resource, "");
  EXPECT_EQ(s.outputs[0].resource, "org.two");
  EXPECT_THAT(s.unopened, ElementsAre(0, 1, 0));
  EXPECT_THAT(Refusal("F(a: resource) -> (); resource b org.x"), HasSubstr("'b' is neither an input nor an output of the op"));
  EXPECT_THAT(Refusal("F(a: float) -> (); resource a org.x"), HasSubstr("'a' is no handle; its type must be resource"));
  EXPECT_THAT(Refusal("F(a: resource) -> (); resource a"), HasSubstr("expected the type of resource"));
  EXPECT_THAT(Refusal("F(a: resource) -> (); resource a org.x a org.y"), HasSubstr("'a' stands here twice"));
  EXPECT_THAT(Refusal("F(a: T) -> (); T: type; unopened a"), HasSubstr("'a' is no handle"));
  EXPECT_THAT(Refusal("F() -> (a: resource); unopened a"), HasSubstr("'a' is no input"));
}

TEST(OpSchemaTest, LimitsOfSizesAreChecked) {
  for (const char* good : {"elements x", "axis x 1", "value n", "elements x; ?limits y 0 axis x 0; ?grows; doc \"d\""}) {
    EXPECT_TRUE(ParseOpSchema(StrCat("F(x: float, n: int32) -> (y: float); ?limits y 0 ", good)).ok()) << good;
  }
  const auto refusal = [](std::string_view hint) {
    return Refusal(StrCat("F(x: float, v: T * N) -> (y: float, w: T * N); N: int; T: type; ?limits ", hint));
  };
  EXPECT_THAT(refusal("x 0 elements x"), HasSubstr("'x' is no output of the op"));
  EXPECT_THAT(refusal("w 0 elements x"), HasSubstr("'w' is a list of values"));
  EXPECT_THAT(refusal("y 0 elements y"), HasSubstr("'y' is no input of the op"));
  EXPECT_THAT(refusal("y 0 elements v"), HasSubstr("'v' is a list of values"));
  EXPECT_THAT(refusal("y -1 elements x"), HasSubstr("-1 is no axis"));
  EXPECT_THAT(refusal("y 0 axis x 300"), HasSubstr("300 is no axis"));
  EXPECT_THAT(refusal("y 0 size x"), HasSubstr("'size' is neither"));
  EXPECT_THAT(refusal("y 0 axis x"), HasSubstr("the number of an axis"));
  EXPECT_THAT(refusal("y elements x"), HasSubstr("the number of an axis"));
}

TEST(OpSchemaTest, SaysWhichInputsAreDataOnly) {
  const OpSchema s = *ParseOpSchema("F(x: float, i: int32, y: float) -> (z: float); ?data y x; doc \"d\"");
  EXPECT_THAT(s.data, ElementsAre(1, 0, 1));
  EXPECT_THAT((*ParseOpSchema("F(x: float) -> (z: float)")).data, ElementsAre(0));
  EXPECT_THAT(Refusal("F(x: float) -> (); ?data y"), HasSubstr("'y' is no input"));
}

TEST(OpSchemaTest, KnowsWhatAnOpTouches) {
  EXPECT_EQ(Parsed("F() -> (); stateful").touches, 0u);
  EXPECT_EQ(Parsed("F() -> (); stateful; touches files").touches, uint32_t{kTouchesFiles});
  const uint32_t all = Parsed("F() -> (); touches network system files; stateful").touches;
  EXPECT_EQ(all, uint32_t{kTouchesFiles | kTouchesNetwork | kTouchesSystem});
  EXPECT_EQ(TouchesText(all), "files and network and system");
  EXPECT_THAT(Refusal("F() -> (); stateful; touches wood"), HasSubstr("'wood' is nothing to touch; there are files, network and system"));
  EXPECT_THAT(Refusal("F() -> (); stateful; touches"), HasSubstr("expected what the op touches"));
  EXPECT_THAT(Refusal("F() -> (); touches files"), HasSubstr("column 12: an op that touches something"));
  EXPECT_THAT(Refusal("F() -> (); touches files; stateful; once"), HasSubstr("make it stateful, and not once"));
}

TEST(OpSchemaTest, AcceptsAttributesNamedLikeClauses) {
  OpSchema s = Parsed("F() -> (); role: int; doc: string = \"\"; stateful: bool = true");
  EXPECT_EQ(s.attrs.size(), 3u);
  EXPECT_FALSE(s.stateful);
}

TEST(OpSchemaTest, SkipsHintsWhateverTheySay) {
  OpSchema s = Parsed("F() -> ();?cost 3 * n; ? note \"a ; inside\" x=[1;stateful");
  EXPECT_TRUE(s.stateful);
  EXPECT_THAT(s.attrs, IsEmpty());
}

TEST(OpSchemaTest, ReadsNamesOfOtherNameSpaces) {
  EXPECT_EQ(Parsed("onnx.Loop() -> ()").name, "onnx.Loop");
  EXPECT_EQ(Parsed("Acme>Fancy() -> ()").name, "Acme>Fancy");
  EXPECT_EQ(Parsed("_Send() -> ()").name, "_Send");
}

TEST(OpSchemaTest, IgnoresWhiteSpaceAndLineEnds) {
  OpSchema s = Parsed("  F (\n x :\tfloat [ 2 , n ] * N ) -> ( ) ;\r\n N : int >= 1 = 2\n");
  EXPECT_EQ(s.inputs[0].number_attr, "N");
}

TEST(OpSchemaTest, NamesColumnAndOpOfAnError) {
  auto s = ParseOpSchema("F(x: float) -> (y: float); statefull");
  EXPECT_EQ(Text(s.status()), "schema of op 'F', column 28: unknown clause 'statefull'; a hint that hosts may skip starts with '?'");
}

TEST(OpSchemaTest, RefusesBrokenStructure) {
  EXPECT_THAT(Refusal(""), StartsWith("column 1: expected the op's name, found the end"));
  EXPECT_THAT(Refusal("9(x"), StartsWith("column 1: expected the op's name, found '9'"));
  EXPECT_THAT(Refusal("F"), StartsWith("column 2: expected '(' before the inputs"));
  EXPECT_THAT(Refusal("F(x: float"), StartsWith("column 11: expected ')'"));
  EXPECT_THAT(Refusal("F(x float) -> ()"), StartsWith("column 5: expected ':'"));
  EXPECT_THAT(Refusal("F(x: float,) -> ()"), StartsWith("column 12: expected the name of an argument"));
  EXPECT_THAT(Refusal("F()"), HasSubstr("an op without outputs says `-> ()`"));
  EXPECT_THAT(Refusal("F() -> () stateful"), StartsWith("column 11: expected ';'"));
  EXPECT_THAT(Refusal("F() -> ();"), StartsWith("column 11: expected a clause, found the end"));
  EXPECT_THAT(Refusal(std::string_view("F() -> ()\0;", 11)), StartsWith("column 10: expected ';'"));
}

TEST(OpSchemaTest, RefusesUnknownAndMixedUpTypes) {
  EXPECT_THAT(Refusal("F(x: floaty) -> ()", absl::StatusCode::kUnimplemented),
              StartsWith("column 6: 'floaty' is neither an element type nor an attribute"));
  EXPECT_THAT(Refusal("F(x: N) -> (); N: int"), StartsWith("column 6: 'N' is neither"));
  EXPECT_THAT(Refusal("F(x: float_ref) -> ()"), HasSubstr("references are written ref(type)"));
  EXPECT_THAT(Refusal("F(v: ref(T)) -> (); T: type"), HasSubstr("runs_as OP"));
  EXPECT_THAT(Refusal("F(v: T) -> (); T: type; runs_as G"), HasSubstr("has no references"));
  EXPECT_THAT(Refusal("F(x: float * N) -> ()"), StartsWith("column 14: 'N' is no int attribute"));
  EXPECT_THAT(Refusal("F(x: T * N) -> (); T: list(type); N: int"), StartsWith("column 10: list attribute 'T' already says"));
  EXPECT_THAT(Refusal("F() -> (); T: {float, flat}", absl::StatusCode::kUnimplemented), StartsWith("column 23: 'flat' is no element type"));
  EXPECT_THAT(Refusal("F() -> (); T: {float, float}"), StartsWith("column 23: float stands here twice"));
  EXPECT_THAT(Refusal("F() -> (); T: {}"), StartsWith("column 16: expected an element type"));
}

TEST(OpSchemaTest, RefusesBadDimensions) {
  EXPECT_THAT(Refusal("F(x: float[-2]) -> ()"), StartsWith("column 12: size -2 is negative"));
  EXPECT_THAT(Refusal("F(x: float[2 3]) -> ()"), StartsWith("column 14: expected ']'"));
  EXPECT_THAT(Refusal("F(x: float[*_]) -> ()"), HasSubstr("need a name"));
  EXPECT_THAT(Refusal("F(x: float[99999999999999999999]) -> ()"), HasSubstr("does not fit into 64 bits"));
  EXPECT_THAT(Refusal("F(x: float[n, *s]) -> (y: float[*n])"), StartsWith("column 33: 'n' stands for one axis in one place"));
}

TEST(OpSchemaTest, RefusesNamesThatAreTaken) {
  EXPECT_THAT(Refusal("F(x: float, x: float) -> ()"), StartsWith("column 13: the name 'x' is taken"));
  EXPECT_THAT(Refusal("F(x: float) -> (x: float)"), StartsWith("column 17: the name 'x' is taken"));
  EXPECT_THAT(Refusal("F(x: float) -> (); x: int"), StartsWith("column 20: the name 'x' is taken"));
}

TEST(OpSchemaTest, RefusesBadAttributes) {
  EXPECT_THAT(Refusal("F() -> (); a: number"), StartsWith("column 15: 'number' is no attribute kind"));
  EXPECT_THAT(Refusal("F() -> (); a: list(list(int))"), HasSubstr("list of lists"));
  EXPECT_THAT(Refusal("F() -> (); a: float >= 2"), StartsWith("column 21: only an int or a list has a least value"));
  EXPECT_THAT(Refusal("F() -> (); a: int >= 2 = 1"), StartsWith("column 26: the default: attribute 'a' is 1 but must be at least 2"));
  EXPECT_THAT(Refusal("F() -> (); a: list(int) >= 2 = [1]"), HasSubstr("has 1 values but needs at least 2"));
  EXPECT_THAT(Refusal("F() -> (); a: {float} = half"), HasSubstr("must be one of float"));
  EXPECT_THAT(Refusal("F() -> (); a: {\"x\"} = \"y\""), HasSubstr("is \"y\" but must be one of \"x\""));
  EXPECT_THAT(Refusal("F() -> (); a: tensor = 3"), HasSubstr("a tensor has no default"));
  EXPECT_THAT(Refusal("F() -> (); a: bool = yes"), StartsWith("column 22: expected true or false"));
  EXPECT_THAT(Refusal("F() -> (); a: int = 1.5"), StartsWith("column 21: expected the default, an integer, found '1.5'"));
  EXPECT_THAT(Refusal("F() -> (); a: float = 1e999"), HasSubstr("does not fit into a double"));
  EXPECT_THAT(Refusal("F() -> (); a: string = \"abc"), StartsWith("column 24: the text in quotes has no end"));
  EXPECT_THAT(Refusal("F() -> (); a: string = \"a\\q\""), HasSubstr("unknown escape"));
  EXPECT_THAT(Refusal("F() -> (); a: shape = [-2]"), StartsWith("column 24: size -2 is negative"));
  EXPECT_THAT(Refusal("F() -> (); a: int since 1"), HasSubstr("an attribute that came later needs a default"));
  EXPECT_THAT(Refusal("F() -> (); a: int = 1 since -1"), HasSubstr("minor version -1 is out of range"));
}

TEST(OpSchemaTest, RefusesBadClauses) {
  EXPECT_THAT(Refusal("F() -> (); shape_only x"), StartsWith("column 23: 'x' is no input"));
  EXPECT_THAT(Refusal("F() -> (); role a; role b"), StartsWith("column 20: clause 'role' stands here twice"));
  EXPECT_THAT(Refusal("F() -> (); no_gradient because"), HasSubstr("in double quotes"));
  EXPECT_THAT(Refusal("F() -> (); no_gradient \"\""), HasSubstr("needs a reason"));
  EXPECT_THAT(Refusal("F() -> (); ?hint \"open"), HasSubstr("has no end"));
}

TEST(OpSchemaTest, ReadsHowTheOutputFollowsFromTheInputs) {
  EXPECT_EQ(Parsed("F(a: float, x: float) -> (y: float); passes x").algebra.passes, 1);
  EXPECT_EQ(Parsed("F(a: float, x: float) -> (y: float); renames x").algebra.renames, 1);
  EXPECT_EQ(Parsed("F(x: S) -> (y: T); S: type; T: type; converts x").algebra.converts, 0);
  OpAlgebra a = Parsed("F(x: float, perm: int32) -> (y: float); permutes x perm").algebra;
  EXPECT_EQ(a.permuted, 0);
  EXPECT_EQ(a.permutation, 1);
  a = Parsed("F(x: float, y: float, c: bool) -> (z: float); chooses c y x").algebra;
  EXPECT_EQ(a.condition, 2);
  EXPECT_EQ(a.if_true, 1);
  EXPECT_EQ(a.if_false, 0);
  a = Parsed("F(x: float, y: float) -> (z: float); neutral y -0 x 1.5").algebra;
  ASSERT_THAT(a.neutral, SizeIs(2));
  EXPECT_EQ(a.neutral[0].first, 1);
  EXPECT_TRUE(std::signbit(a.neutral[0].second));
  EXPECT_EQ(a.neutral[1], std::pair(0, 1.5));
  a = Parsed("F(x: float) -> (y: float); involution; idempotent").algebra;
  EXPECT_TRUE(a.involution && a.idempotent && a.said);
  EXPECT_FALSE(Parsed("F(x: float) -> (y: float)").algebra.said);
}

TEST(OpSchemaTest, RefusesAlgebraThatCannotBe) {
  EXPECT_THAT(Refusal("F(x: float) -> (y: float); passes z"), StartsWith("column 35: 'z' is no input"));
  EXPECT_THAT(Refusal("F(x: float) -> (y: float); passes"), HasSubstr("the name of an input"));
  EXPECT_THAT(Refusal("F(x: float, y: float) -> (z: float); neutral x"), HasSubstr("the number that changes nothing"));
  EXPECT_THAT(Refusal("F(x: float) -> (y: float); neutral x 1"), HasSubstr("only an op of two inputs"));
  EXPECT_THAT(Refusal("F(x: float, y: float) -> (z: float); involution"), HasSubstr("only an op of one input"));
  for (const char* text : {"F(x: float) -> (y: float); stateful; passes x", "F(x: float * N) -> (y: float); N: int; passes x",
                           "F(x: float) -> (y: float, z: float); passes x", "F(x: float) -> (); passes x"}) {
    EXPECT_THAT(Refusal(text), HasSubstr("only an op without state, with one output")) << text;
  }
}

// Every prefix of a text that uses the whole grammar is parsed or refused without a crash.
TEST(OpSchemaTest, SurvivesEveryPrefixAndEveryDroppedByte) {
  std::string text =
      "Ns.F(x: ref(T)[2, n, *s, _] * N, l: L) -> (y: float[]); T: {float, half} = half since 1; N: int >= 1 = 2; L: list(type) = [int32]; "
      "s2: {\"a\", \"b\"} = \"a\"; sh: shape = [1, ?]; f: list(float) = [1.5, -inf]; stateful; shape_only x; role r; doc \"d\\n\"; ?hint "
      "\"h\" z; runs_as G";
  ASSERT_TRUE(ParseOpSchema(text).ok());
  for (size_t i = 0; i < text.size(); ++i) {
    (void)ParseOpSchema(std::string_view(text).substr(0, i)).status();
    (void)ParseOpSchema(text.substr(0, i) + text.substr(i + 1)).status();
    (void)ParseOpSchema(text.substr(0, i) + "\xff" + text.substr(i + 1)).status();
  }
}

TEST(OpSchemaTest, ReadsWhatGoesByAxes) {
  const OpSchema s = Parsed(
      "F(n: int32, x: T, by: T * N) -> (y: T, z: T); ?axes x z form steps; ?axis_numbers n; ?reduces keep; T: type; N: int; "
      "form: {\"NHWC\", \"NCHW\"} = \"NHWC\"; steps: list(int) = [1]; keep: bool = false");
  EXPECT_TRUE(s.axes.ordered);
  EXPECT_FALSE(s.axes.elementwise);
  EXPECT_THAT(s.axes.in, ElementsAre(0, 1, 0));
  EXPECT_THAT(s.axes.out, ElementsAre(0, 1));
  EXPECT_EQ(s.axes.format, s.FindAttr("form"));
  EXPECT_THAT(s.axes.lists, ElementsAre(s.FindAttr("steps")));
  EXPECT_EQ(s.axes.numbers, 0);
  EXPECT_EQ(s.axes.keep, s.FindAttr("keep"));
  EXPECT_TRUE(Parsed("F(x: float) -> (y: float); ?elementwise").axes.elementwise);
  EXPECT_FALSE(Parsed("F(x: float) -> (y: float); ?elementwise_not").axes.elementwise);
}

TEST(OpSchemaTest, RefusesAxesOfWhatIsNotThere) {
  EXPECT_THAT(Refusal("F(x: float) -> (y: float); ?axes x w"), HasSubstr("'w' is neither an argument, nor an attribute"));
  EXPECT_THAT(Refusal("F(x: float) -> (y: float); ?axes x k; k: float = 1"), HasSubstr("'k' is neither"));
  EXPECT_THAT(Refusal("F(x: float) -> (y: float); ?axis_numbers y"), HasSubstr("'y' is no input of the op"));
  EXPECT_THAT(Refusal("F(x: int32 * N) -> (y: float); ?axis_numbers x; N: int"), HasSubstr("'x' is a list of values"));
  EXPECT_THAT(Refusal("F(x: float) -> (y: float); ?reduces keep; keep: bool = true"), HasSubstr("must be an attribute of kind bool"));
  EXPECT_THAT(Refusal("F(x: int32) -> (y: float); ?axis_numbers x; ?reduces keep; keep: int = 1"), HasSubstr("'keep' must be"));
}

TEST(CheckAttrTest, WantsTheRightKindAndForm) {
  AttrSpec spec = Parsed("F() -> (); a: int").attrs[0];
  EXPECT_TRUE(CheckAttr(spec, AttrValue::Int(3)).ok());
  EXPECT_EQ(Text(CheckAttr(spec, AttrValue::Ints({3, 4}))), "attribute 'a' is [3, 4] but must be an int");
  EXPECT_EQ(Text(CheckAttr(spec, AttrValue::String("x"))), "attribute 'a' is \"x\" but must be an int");
  EXPECT_EQ(Text(CheckAttr(spec, AttrValue())), "attribute 'a' is no value but must be an int");
}

TEST(CheckAttrTest, WantsAllowedValues) {
  OpSchema s = Parsed("F() -> (); T: {float, half}; p: {\"SAME\"}; n: int >= 0; l: list(type) >= 1; sh: shape");
  EXPECT_TRUE(CheckAttr(s.attrs[0], AttrValue::Type(TW_HALF)).ok());
  EXPECT_EQ(Text(CheckAttr(s.attrs[0], AttrValue::Type(TW_INT8))), "attribute 'T' is int8 but must be one of float, half");
  EXPECT_EQ(Text(CheckAttr(s.attrs[0], AttrValue::Type(77))), "attribute 'T': type 77 is no element type");
  EXPECT_EQ(Text(CheckAttr(s.attrs[1], AttrValue::String("same"))), "attribute 'p' is \"same\" but must be one of \"SAME\"");
  EXPECT_EQ(Text(CheckAttr(s.attrs[2], AttrValue::Int(-1))), "attribute 'n' is -1 but must be at least 0");
  EXPECT_EQ(Text(CheckAttr(s.attrs[3], AttrValue::Types({}))), "attribute 'l' has 0 values but needs at least 1");
  EXPECT_FALSE(CheckAttr(s.attrs[3], AttrValue::Types({TW_FLOAT, 0})).ok());
  EXPECT_TRUE(CheckAttr(s.attrs[4], AttrValue::OfShape(Shape({-1, 2}))).ok());
  EXPECT_FALSE(CheckAttr(s.attrs[4], AttrValue::OfShape(Shape({-5}))).ok());
  EXPECT_FALSE(CheckAttr(s.attrs[4], AttrValue::OfShape(Shape(std::vector<int64_t>(300, 1)))).ok());
}

}  // namespace
}  // namespace thalweg
