package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/testtool"
)

// TestTestsRunOnlyWhatDepsInstalls: a test may run programs of the table in package testtool, and cross/deps installs their packages. So
// may the blocks of pages that are tried.
func TestTestsRunOnlyWhatDepsInstalls(t *testing.T) {
	script, err := os.ReadFile("../../cross/deps")
	require.NoError(t, err)
	installed := map[string]bool{}
	for word := range strings.FieldsSeq(strings.ReplaceAll(string(script), `"`, " ")) {
		installed[word] = true
	}
	for program, debian := range testtool.Packages {
		assert.True(t, debian == "" || installed[debian], "%s: add Debian's package %q to a line of apt_install in cross/deps", program, debian)
	}
	used := map[string]bool{}
	for _, path := range goFiles(t) {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join("../..", path), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		if !imports(file, "testing") || strings.HasPrefix(path, "internal/testtool/") {
			continue
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			at := files.Position(call.Pos())
			program, lookedUp := programOf(call)
			assert.False(t, lookedUp, "%s: testtool.Program finds programs, and fails where one is missing", at)
			if program != "" && !strings.Contains(program, "/") {
				_, known := testtool.Packages[program]
				assert.True(t, known, "%s: add %q with its Debian package to internal/testtool", at, program)
				used[program] = true
			}
			return true
		})
	}
	for _, page := range documents(t) {
		for _, block := range fences(page) {
			for _, word := range strings.Fields(block.text) {
				used[word] = used[word] || block.mark == "tried"
			}
		}
	}
	for program := range testtool.Packages {
		assert.True(t, used[program], "no test runs %s: remove it from internal/testtool", program)
	}
}

func imports(file *ast.File, path string) bool {
	for _, spec := range file.Imports {
		if spec.Path.Value == strconv.Quote(path) {
			return true
		}
	}
	return false
}

// programOf returns the program that a call of package exec or testtool names as a literal, and whether the call is exec.LookPath.
func programOf(call *ast.CallExpr) (program string, lookedUp bool) {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return "", false
	}
	pkg, ok := function.X.(*ast.Ident)
	if !ok {
		return "", false
	}
	argument := 0
	switch pkg.Name + "." + function.Sel.Name {
	case "exec.LookPath":
		return "", true
	case "exec.Command":
	case "exec.CommandContext", "testtool.Program":
		argument = 1
	default:
		return "", false
	}
	literal, ok := call.Args[argument].(*ast.BasicLit)
	if !ok {
		return "", false
	}
	program, err := strconv.Unquote(literal.Value)
	if err != nil {
		return "", false
	}
	return program, false
}
