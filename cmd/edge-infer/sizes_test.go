package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/testtool"
)

// functionLimit is the highest number of lines of a function.
const functionLimit = 80

// long must appear in the comment of a function that exceeds the limit.
var long = regexp.MustCompile(`(?i)\blong\b`)

func TestFunctionsAreShort(t *testing.T) {
	count := 0
	for _, path := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		data, err := os.ReadFile(filepath.Join("../..", path))
		require.NoError(t, err)
		fileSet := token.NewFileSet()
		file, err := parser.ParseFile(fileSet, path, data, parser.ParseComments)
		require.NoError(t, err)
		for _, declared := range file.Decls {
			function, ok := declared.(*ast.FuncDecl)
			if !ok {
				continue
			}
			count++
			first, last := fileSet.Position(function.Pos()), fileSet.Position(function.End())
			assert.True(t, last.Line-first.Line < functionLimit || long.MatchString(function.Doc.Text()),
				"%s: %s has more than %d lines, and its comment does not say why it is long", first, function.Name.Name, functionLimit)
		}
	}
	require.Greater(t, count, 1000)
}

// goFiles lists the Go files of the project that git knows or would add, below its root.
func goFiles(t *testing.T) []string {
	list := exec.Command(testtool.Program(t, "git"), "ls-files", "--cached", "--others", "--exclude-standard", "*.go")
	list.Dir = "../.."
	output, err := list.Output()
	require.NoError(t, err)
	var files []string
	for path := range strings.FieldsSeq(string(output)) {
		if _, err := os.Stat(filepath.Join("../..", path)); err == nil { // it may be about to go
			files = append(files, path)
		}
	}
	return files
}

// memberLimit is the highest number of methods and of fields of a type; embedded ones count as one field.
const memberLimit = 40

// TestTypesAreNarrow: a type with more members is several concepts.
func TestTypesAreNarrow(t *testing.T) {
	methods, fields := map[string]int{}, map[string]int{}
	for _, path := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", path), nil, parser.ParseComments)
		require.NoError(t, err)
		if ast.IsGenerated(file) {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					methods[filepath.Dir(path)+"."+receiver(n.Recv.List[0].Type)]++
				}
			case *ast.TypeSpec:
				if of, ok := n.Type.(*ast.StructType); ok {
					fields[filepath.Dir(path)+"."+n.Name.Name] = of.Fields.NumFields()
				}
			}
			return true
		})
	}
	require.Greater(t, len(fields), 500)
	for what, counts := range map[string]map[string]int{"methods": methods, "fields": fields} {
		for name, n := range counts {
			assert.True(t, n <= memberLimit, "%s has %d %s, more than %d", name, n, what, memberLimit)
		}
	}
}

// receiver returns the name of a method's type.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}
