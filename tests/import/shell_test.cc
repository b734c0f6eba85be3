// The shell reader against what bash 5 makes of the same lines (its manual, "Shell Expansions"); nothing is executed.
#include "import/shell.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "import/shell_arithmetic.h"
#include "import/shell_nested.h"

namespace stepcast::imports {
namespace {

using Words = std::vector<std::string>;

ShellScript shell(const std::string& text, const std::map<std::string, std::string>& defines = {}) {
  return read_shell(text, "run.sh", defines);
}

// The words of the last command.
Words last(const std::string& text, const std::map<std::string, std::string>& defines = {}) {
  Words words;
  const ShellScript read = shell(text, defines);
  if (read.commands.empty()) return words;
  for (const ShellWord& word : read.commands.back().words) words.push_back(word.text);
  return words;
}

Words unknowns(const std::string& text, const std::map<std::string, std::string>& defines = {}) {
  Words names;
  for (const ShellCommand& command : shell(text, defines).commands) {
    for (const ShellWord& word : command.words) names.insert(names.end(), word.unknown.begin(), word.unknown.end());
  }
  return names;
}

TEST(Shell, ExpandsVariablesAndDefaults) {
  EXPECT_EQ(last("A=4\nrun $A ${A} x${A}y \"$A\" '$A'"), (Words{"run", "4", "4", "x4y", "4", "$A"}));
  EXPECT_EQ(last("run ${A:-8} ${A-7} ${A:+6}"), (Words{"run", "8", "7"}));
  EXPECT_EQ(last("A=\nrun ${A:-8} \"${A-7}\" ${A:+6}"), (Words{"run", "8", ""}));
  EXPECT_EQ(last("A=1\nrun ${A:-8} ${A:+6}"), (Words{"run", "1", "6"}));
  EXPECT_EQ(last(": ${A:=3}\nrun $A ${B:-${A}}"), (Words{"run", "3", "3"}));
  EXPECT_EQ(last("A=1\nA+=2\nrun $A"), (Words{"run", "12"}));
}

TEST(Shell, SplitsUnquotedExpansionsOnly) {
  EXPECT_EQ(last("A=\"--x 1  --y 2\"\nrun $A \"$A\""), (Words{"run", "--x", "1", "--y", "2", "--x 1  --y 2"}));
}

TEST(Shell, ReadsArraysOverLinesWithComments) {
  const std::string text = "A=(\n  --x 1  # why\n  # none\n  \"--y z\"\n)\nA+=(--w)\nrun ${A[@]} ${#A[@]} ${A[1]}";
  EXPECT_EQ(last(text), (Words{"run", "--x", "1", "--y", "z", "--w", "4", "1"}));
  EXPECT_EQ(last("A=()\nrun \"${A[@]}\" \"$@\" \"x${A[@]}\" \"\""), (Words{"run", "x", ""}));
  EXPECT_EQ(last("A=(\"--y z\")\nrun \"${A[@]}\""), (Words{"run", "--y z"}));
}

TEST(Shell, JoinsContinuedLinesAndKeepsTheirNumbers) {
  const ShellScript read = shell("run \\\n  --x 1 \\\n  --y 2 # end\nnext");
  ASSERT_EQ(read.commands.size(), 2U);
  ASSERT_EQ(read.commands[0].words.size(), 5U);
  EXPECT_EQ(read.commands[0].words[3].text, "--y");
  EXPECT_EQ(read.commands[0].words[3].line, 3);
}

TEST(Shell, RemembersTheLineOfTextInAVariable) {
  const ShellScript read = shell("A=\"--x 1 \\\n --y 2\"\nrun $A");
  ASSERT_EQ(read.commands[0].words.size(), 5U);
  EXPECT_EQ(read.commands[0].words[1].line, 1);
  EXPECT_EQ(read.commands[0].words[3].line, 2);
}

TEST(Shell, SkipsHereDocumentsRedirectionsAndTests) {
  EXPECT_EQ(last("cat > f <<'EOF'\nrun --x 1\nEOF\nrun --y 2 > log 2>&1 | tee out"), (Words{"tee", "out"}));
  const ShellScript read = shell("cat <<-END\n\trun --x\n\tEND\n[[ -n $A && $B < 3 ]]\n((A > 2))\nrun --y 2>&1 &");
  ASSERT_EQ(read.commands.size(), 2U);
  EXPECT_EQ(read.commands[1].words.size(), 2U);
}

TEST(Shell, NamesWhatOnlyARunWouldTell) {
  EXPECT_EQ(unknowns("run $A"), Words{"A"});
  EXPECT_EQ(unknowns("N=$(wc -l < hosts)\nrun $N"), Words{"N"});
  EXPECT_EQ(unknowns("N=`hostname`\nrun $N"), Words{"N"});
  EXPECT_EQ(unknowns("A=1\nif [ $X -gt 1 ]; then\n  A=2\nfi\nrun $A"), (Words{"X", "X"}));  // X decides
  EXPECT_EQ(unknowns("for i in 1 2; do B=$i; done\nrun $B"), Words{"B"});
  EXPECT_EQ(unknowns("A=1\ntest -f x && A=2\nrun $A"), Words{"A"});
  EXPECT_EQ(unknowns("A=x.y\nrun ${A%.y} $1"), (Words{"A", "1"}));
  EXPECT_EQ(unknowns("run \"$@\""), Words{});
}

TEST(Shell, LetsADefinitionWinOverTheScript) {
  EXPECT_EQ(last("A=1\nrun $A", {{"A", "9"}}), (Words{"run", "9"}));
  EXPECT_EQ(last("if true; then A=(1); fi\nrun ${A[@]}", {{"A", "--x 2"}}), (Words{"run", "--x", "2"}));
}

TEST(Shell, DoesArithmetic) {
  EXPECT_EQ(last("G=8\nN=4\nrun $((G * $N + 2)) $(( (G-2) / 4 ))"), (Words{"run", "34", "1"}));
  EXPECT_EQ(unknowns("run $((G * 2))"), Words{"G"});
  const NumberOf none = [](const std::string&) { return std::optional<std::int64_t>(); };
  EXPECT_EQ(evaluate_arithmetic("-7 / 2", none).value, -3);  // towards zero, as in C
  EXPECT_FALSE(evaluate_arithmetic("1 / 0", none).value);
  EXPECT_FALSE(evaluate_arithmetic("9223372036854775807 + 1", none).value);
  EXPECT_FALSE(evaluate_arithmetic("2 +", none).value);
}

TEST(Shell, CollectsEnvironmentAndSlurm) {
  const ShellScript read = shell("#SBATCH --nodes=4 -n 32 # four\nexport A=1 B=2\nC=3 run\n");
  ASSERT_EQ(read.slurm.size(), 3U);
  EXPECT_EQ(read.slurm[0].text, "--nodes=4");
  ASSERT_EQ(read.environment.size(), 3U);
  EXPECT_EQ(read.environment[1].first, "B");
  EXPECT_EQ(read.environment[2].second.text, "3");
}

TEST(Shell, RefusesWhatNeverEnds) {
  for (const char* text : {"run 'x", "run \"x", "A=(1 2", "run ${A:-x", "run $(ls", "run `ls", "run $((1"}) {
    EXPECT_THROW(shell(text), Error) << text;
  }
}

TEST(Shell, StopsWhereExpansionsGrowWithoutBound) {
  std::string text = "A=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 40; ++i) text += "A=$A$A\n";
  EXPECT_THROW(shell(text), Error);
  std::string deep = "run ";
  for (int i = 0; i < 100; ++i) deep += "${A:-";
  EXPECT_THROW(shell(deep), Error);
}

// The words of the nested commands, joined by blanks; what has no value as <NAME>.
std::vector<std::string> opened(const std::string& text, const std::map<std::string, std::string>& defines = {}) {
  const ShellScript read = read_shell(text, "run.sh", defines);
  std::vector<std::string> commands;
  for (const std::vector<ShellWord>& words : open_command(read.commands.back(), read.variables).commands) {
    std::string line;
    for (const ShellWord& word : words) {
      line += (line.empty() ? "" : " ") + word.text;
      for (const std::string& name : word.unknown) line += "<" + name + ">";
    }
    commands.push_back(line);
  }
  return commands;
}

TEST(Shell, OpensQuotedCommands) {
  EXPECT_EQ(opened("bash -c \"python t.py --x 'a b' $Y\""), (Words{"bash -c python t.py --x a b <Y>"}));
}

// bash: "${A[*]}" is the elements in one word, joined by a blank; `bash -c` splits them again.
TEST(Shell, JoinsAnArrayInAQuotedCommand) {
  const std::string array = "A=(--a 1 --b 2)\nP=\"--c 3\"\n";
  EXPECT_EQ(last(array + "run \"x ${A[*]} y\""), (Words{"run", "x --a 1 --b 2 y"}));
  EXPECT_EQ(last(array + "run \"x ${A[@]} y\""), (Words{"run", "x --a", "1", "--b", "2 y"}));
  EXPECT_EQ(opened(array + "srun bash -c \"python t.py ${A[*]} $P\""),
            (Words{"srun bash -c python t.py --a 1 --b 2 --c 3"}));
  // eval joins its words; bash -c reads the first, the others are $0, $1, ...
  EXPECT_EQ(opened(array + "eval \"python t.py ${A[@]} $P\""), (Words{"eval python t.py --a 1 --b 2 --c 3"}));
  const ShellScript lost = shell(array + "bash -c \"python t.py ${A[@]} $P\"");
  EXPECT_EQ(open_command(lost.commands.back(), lost.variables).lost.front().text, "--b");
  EXPECT_EQ(opened(array + "bash -c 'python t.py \"$@\"' _ \"${A[@]}\""), (Words{"bash -c python t.py --a 1 --b 2"}));
}

TEST(Shell, ReadsTheVariablesOfANestedCommand) {
  EXPECT_EQ(opened("export P='--c 3'\nbash -c 'python t.py --a $P'"), (Words{"bash -c python t.py --a --c 3"}));
  EXPECT_EQ(opened("bash -c \"python t.py --a \\$P \\${Q:-4} \\$(x y)\"", {{"P", "7"}}),
            (Words{"bash -c python t.py --a 7 4 <$(...)>"}));
  EXPECT_EQ(opened("bash -c 'python t.py --a $RANK'"), (Words{"bash -c python t.py --a <RANK>"}));
}

TEST(Shell, EndsANestedCommandWhereAShellDoes) {
  EXPECT_EQ(opened("bash -c 'cd /x && python t.py --a 1 --b; echo done'"),
            (Words{"bash -c cd /x", "bash -c python t.py --a 1 --b", "bash -c echo done"}));
  EXPECT_EQ(opened("bash -c '\n python t.py \\\n --a 1 # why\n --b 2>&1 >log --c'"),
            (Words{"bash -c python t.py --a 1", "bash -c --b --c"}));
}

}  // namespace
}  // namespace stepcast::imports
