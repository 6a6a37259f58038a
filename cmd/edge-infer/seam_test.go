package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// drivers are the rooms that may submit to an engine, wait for it and decode what it gives: the seam, and what wraps an engine in another
// one. Everybody else has a predict.Predictor or a predict.Raw.
var drivers = []string{"postprocess/predict", "engine/auto", "engine/standby"}

// TestOnlyTheSeamDrivesEngines looks at the types of every call, so that neither an alias nor a wrapper hides one.
func TestOnlyTheSeamDrivesEngines(t *testing.T) {
	packages, files := list(t), token.NewFileSet()
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	importing := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	contract, err := importing.Import(module + "engine")
	require.NoError(t, err)
	engine := contract.Scope().Lookup("Engine").Type().Underlying().(*types.Interface)
	found := 0
	for _, p := range packages {
		path, ours := strings.CutPrefix(p.ImportPath, module)
		if !ours || p.DepOnly || len(p.CgoFiles) > 0 || strings.HasSuffix(path, "test") { // C stands below the seam, and tests may do anything
			continue
		}
		for _, at := range drivenBy(t, p, files, importing, engine) {
			found++
			assert.Contains(t, drivers, path, "%s drives an engine: postprocess/predict has what it needs", at)
		}
	}
	assert.NotZero(t, found, "the seam itself was not seen")
}

// drivenBy lists where a package calls an engine's Submit, SubmitTensors or Wait, or a decoder's Decode.
func drivenBy(t *testing.T, p listed, files *token.FileSet, importing types.Importer, engine *types.Interface) (found []token.Position) {
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, 0)
		require.NoError(t, err)
		parsed = append(parsed, file)
	}
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	_, err := (&types.Config{Importer: importing}).Check(p.ImportPath, files, parsed, info)
	require.NoError(t, err)
	for at, selected := range info.Selections {
		method, called := selected.Obj().(*types.Func)
		if !called {
			continue
		}
		receiver := selected.Recv()
		drives := slices.Contains([]string{"Submit", "SubmitTensors", "Wait"}, method.Name()) &&
			(types.Implements(receiver, engine) || types.Implements(types.NewPointer(receiver), engine))
		decodes := method.Name() == "Decode" && method.Pkg() != nil && method.Pkg().Path() == module+"postprocess/head"
		if drives || decodes {
			found = append(found, files.Position(at.Pos()))
		}
	}
	return found
}
