package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine/demo"
)

// fence is a block of a page between ``` lines. The word behind its language says what is to be done with it: "tried" runs it, "config"
// holds it against the schema of the configuration.
type fence struct {
	line           int
	language, mark string
	text           string
}

var (
	fenceForm  = regexp.MustCompile("(?ms)^```([a-z]+) ?([a-z]*)\n(.*?)^```$")
	fileName   = regexp.MustCompile(`^# (\S+\.yaml)\n`)
	settingKey = regexp.MustCompile("`((?:model|engine|remote|detect|mqtt|events|web|motion|thermal)\\.[a-z_]+)[`:]")
	variable   = regexp.MustCompile(`EDGE_INFER_[A-Z_]+[A-Z]`)
	flagInText = regexp.MustCompile("`(--[a-z][a-z0-9_-]+)")
	extension  = regexp.MustCompile(`\.(go|onnx|plan|py|md|yaml|json|cc|c|h|cu|ptx|txt)$`)
)

func fences(page string) (all []fence) {
	for _, at := range fenceForm.FindAllStringSubmatchIndex(page, -1) {
		all = append(all, fence{
			line: strings.Count(page[:at[0]], "\n") + 1, language: page[at[2]:at[3]], mark: page[at[4]:at[5]], text: page[at[6]:at[7]],
		})
	}
	return all
}

// TestPagesAreTried runs what the pages in docs mark as tried, each page in a directory of its own, from its first line to its last, with
// the demo network as best.onnx. Files that a page shows are there from where it shows them.
func TestPagesAreTried(t *testing.T) {
	tried := 0
	for path, text := range documents(t) {
		blocks := fences(text)
		count := len(slices.DeleteFunc(slices.Clone(blocks), func(f fence) bool { return f.mark != "tried" }))
		if tried += count; count == 0 {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "best.onnx"), demo.Model(), 0o600))
			require.NoError(t, os.CopyFS(filepath.Join(dir, "parts"), os.DirFS(filepath.Join(programtest.Scenes(t, 4, 3), "images"))))
			if strings.Contains(text, "--out parts") { // the page draws them itself
				require.NoError(t, os.RemoveAll(filepath.Join(dir, "parts")))
			}
			run := programtest.Shell(t, dir)
			for _, block := range blocks {
				if name := fileName.FindStringSubmatch(block.text); name != nil && block.mark == "config" {
					require.NoError(t, os.WriteFile(filepath.Join(dir, name[1]), []byte(block.text), 0o600))
				}
				if block.mark == "tried" {
					output, err := run(block.text)
					require.NoError(t, err, "%s:%d\n%s\n%s", path, block.line, block.text, output)
				}
			}
		})
	}
	assert.NotZero(t, tried)
}

// Whatever page names a setting, a variable or a flag, there is one; and what it shows as a configuration fits the schema.
func TestPagesNameSettingsThatThereAre(t *testing.T) {
	all := documents(t)
	schema, err := jsonschema.NewCompiler().Compile("../../docs/edge-infer.schema.json")
	require.NoError(t, err)
	flags := everyFlag()
	reference := all["docs/configuration.md"]
	variables := variablesInCode(t)
	for path, text := range all {
		if path == "CHANGELOG.md" { // names what is gone
			continue
		}
		for _, block := range fences(text) {
			assert.Contains(t, []string{"", "tried", "config"}, block.mark, "%s:%d", path, block.line)
			if block.mark != "config" {
				continue
			}
			document, err := yaml.YAMLToJSON([]byte(block.text))
			require.NoError(t, err, "%s:%d", path, block.line)
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(document)))
			require.NoError(t, err)
			assert.NoError(t, schema.Validate(value), "%s:%d", path, block.line)
		}
		for _, match := range settingKey.FindAllStringSubmatch(text, -1) {
			if !extension.MatchString(match[1]) && path != "docs/mqtt-messages.md" { // whose fields have names alike
				known := strings.Contains(reference, "| `"+match[1]+"`") || strings.Contains(reference, "| `"+match[1]+".")
				assert.True(t, known, "%s: setting %s", path, match[1])
			}
		}
		for _, name := range variable.FindAllString(text, -1) {
			assert.True(t, variables[name] || strings.Contains(reference, "`"+name+"`"), "%s: variable %s", path, name)
		}
		if strings.HasPrefix(path, "engine/demo/") { // of the training script
			continue
		}
		for _, match := range flagInText.FindAllStringSubmatch(text, -1) {
			assert.True(t, flags[match[1]], "%s: flag %s", path, match[1])
		}
	}
}

// everyFlag is the flags of all commands, and those of other programs that pages name: the install script's and docker's among them.
func everyFlag() map[string]bool {
	all := map[string]bool{"--help": true, "--version": true, "--from": true, "--device": true, "--decode_in_inference": true}
	var add func(c *cobra.Command)
	add = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) { all["--"+f.Name] = true })
		for _, sub := range c.Commands() {
			add(sub)
		}
	}
	add(newRoot(io.Discard, io.Discard))
	return all
}

// variablesInCode are the variables that the program reads beside those of settings.
func variablesInCode(t *testing.T) map[string]bool {
	all := map[string]bool{}
	for _, path := range append(goFiles(t), "Makefile") {
		data, err := os.ReadFile("../../" + path)
		require.NoError(t, err)
		for _, name := range variable.FindAllString(string(data), -1) {
			all[name] = true
		}
	}
	return all
}

// TestLibraryPageInAModuleOfItsOwn follows the page: a module beside a clone, its commands and its program, which prints the page's first
// line. The clone is this one and this test's binary the program that the page builds in it; what modules the page needs are those that
// cross/deps has downloaded.
func TestLibraryPageInAModuleOfItsOwn(t *testing.T) {
	t.Parallel()
	page := documents(t)["docs/library.md"]
	blocks := fences(page)
	commands, output, program := blocks[0], blocks[1], blocks[2]
	require.Equal(t, []string{"sh", "text", "go"}, []string{commands.language, output.language, program.language})
	_, own, found := strings.Cut(commands.text, "mkdir mine && cd mine")
	require.True(t, found, "the part before it makes the clone, in which this test runs")
	const dataset = "../edge-infer/bin/edge-infer dataset --out parts --count 4 --width 640 --height 360\n"
	before, after, found := strings.Cut(own, dataset)
	require.True(t, found)

	parent := t.TempDir()
	require.NoError(t, os.Symlink(programtest.Project(""), filepath.Join(parent, "edge-infer")))
	mine := filepath.Join(parent, "mine")
	require.NoError(t, os.Mkdir(mine, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(mine, "main.go"), []byte(program.text), 0o600))
	programtest.Output(t, "dataset", "--out", filepath.Join(mine, "parts"), "--count", "4", "--width", "640", "--height", "360")
	shell := exec.CommandContext(t.Context(), "sh", "-e", "-c", before+after)
	shell.Dir = mine
	shell.Env = append(os.Environ(), "GOPROXY=off")
	var stderr strings.Builder
	shell.Stderr = &stderr
	printed, err := shell.Output()
	require.NoError(t, err, stderr.String())
	lines := regexp.MustCompile(`(?m)^(\w+ \d\.\d\d) \{X1:`)
	require.Equal(t, lines.FindStringSubmatch(output.text)[1], lines.FindStringSubmatch(string(printed))[1])
}

// The program of the page is one that compiles, and the lines below it are the example that runs.
func TestLibraryPageIsAnExampleThatRuns(t *testing.T) {
	example, err := os.ReadFile("../../postprocess/predict/example_test.go")
	require.NoError(t, err)
	blocks := slices.DeleteFunc(fences(documents(t)["docs/library.md"]), func(f fence) bool { return f.language != "go" })
	require.Len(t, blocks, 2)
	program := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(program, []byte(blocks[0].text), 0o600))
	said, err := exec.CommandContext(t.Context(), "go", "vet", program).CombinedOutput()
	require.NoError(t, err, "%s", said)
	indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(blocks[1].text, "\t$1")
	assert.Contains(t, string(example), indented)
}

// TestTroubleshootingQuotesTheProgram: the page is found by what the log says, so what it quotes in the first column of its tables must be
// what the program has in its text.
func TestTroubleshootingQuotesTheProgram(t *testing.T) {
	var program strings.Builder
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && len(entry.Name()) > 2: // tools and their sources
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"), strings.HasSuffix(path, ".c"):
			text, err := os.ReadFile(path)
			program.Write(text)
			return err
		}
		return nil
	}))
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	require.NoError(t, err)
	quotes := 0
	for line := range strings.Lines(string(page)) {
		symptom, _, _ := strings.Cut(line, " | ")
		if !strings.HasPrefix(symptom, "| `") {
			continue
		}
		for _, quote := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(symptom, -1) {
			assert.True(t, strings.Contains(program.String(), quote[1]), "nothing says %q any more", quote[1]) // megabytes in a message else
			quotes++
		}
	}
	assert.Greater(t, quotes, 40)
}
