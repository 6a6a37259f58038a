package payload_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// module is what go list prints of the packages of the module and of those that they import.
type module struct {
	exports map[string]string // files of export data by import path
	own     []listed
}

type listed struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles       []string
	Standard                bool
	Module                  *struct{ Main bool }
}

func list(t *testing.T) module {
	t.Helper()
	command := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles,Standard,Module", "./...")
	command.Dir = "../.."
	command.Stderr = os.Stderr
	output, err := command.Output()
	require.NoError(t, err)
	m := module{exports: map[string]string{}}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return m
		}
		require.NoError(t, err)
		m.exports[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Main {
			m.own = append(m.own, p)
		}
	}
}

// fields are the fields of published messages, and those that code outside tests sets.
type fields struct {
	published, set map[string]bool
}

// Every field of a published message has a writer outside tests: a field without one is published as 0 for ever.
func TestEveryPublishedFieldIsSet(t *testing.T) {
	if testing.Short() {
		t.Skip("reads all packages")
	}
	m := list(t)
	files := token.NewFileSet()
	open := func(path string) (io.ReadCloser, error) { return os.Open(m.exports[path]) }
	imports := importer.ForCompiler(files, "gc", open)
	all := fields{map[string]bool{}, map[string]bool{}}
	for i := range m.own {
		p := &m.own[i]
		var sources []*ast.File
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			sources = append(sources, file)
		}
		info := &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Defs: map[*ast.Ident]types.Object{},
		}
		config := types.Config{Importer: imports, FakeImportC: true, Error: func(error) {}} // errors are those of C
		checked, _ := config.Check(p.ImportPath, files, sources, info)
		if _, path, _ := strings.Cut(p.ImportPath, "edge-infer/edge-infer/"); published(path) {
			all.add(checked)
		}
		for _, file := range sources {
			ast.Inspect(file, func(n ast.Node) bool {
				all.visit(info, n)
				return true
			})
		}
	}
	assert.Greater(t, len(all.published), 150)
	for name := range all.published {
		assert.True(t, all.set[name], "%s is published, and nothing but tests sets it", name)
	}
}

// published reports whether the structs of a package are messages: those of MQTT, of Home Assistant, and of the page's API.
func published(path string) bool {
	return path == "mqtt/payload" || path == "mqtt/homeassistant" || path == "cmd/edge-infer/internal/web"
}

// add adds the exported fields of a package's structs. In packages that are no messages alone those with JSON tags are.
func (f *fields) add(p *types.Package) {
	for _, name := range p.Scope().Names() {
		named, isType := p.Scope().Lookup(name).(*types.TypeName)
		if !isType || named.IsAlias() {
			continue
		}
		s, isStruct := named.Type().Underlying().(*types.Struct)
		if !isStruct {
			continue
		}
		for i := range s.NumFields() {
			message := strings.HasSuffix(p.Path(), "/payload") && named.Exported() || strings.Contains(s.Tag(i), `json:"`)
			if message && s.Field(i).Exported() && !s.Field(i).Embedded() {
				f.published[key(named.Type(), s.Field(i))] = true
			}
		}
	}
}

func key(owner types.Type, field *types.Var) string { return owner.String() + "." + field.Name() }

// visit notes the fields that a node sets: in a composite literal, by an assignment, or by what has their address.
func (f *fields) visit(info *types.Info, n ast.Node) {
	switch n := n.(type) {
	case *ast.CompositeLit:
		f.literal(info, n)
	case *ast.CallExpr: // a conversion from a struct with the same fields
		if kind := info.Types[n.Fun]; kind.IsType() {
			if s, isStruct := kind.Type.Underlying().(*types.Struct); isStruct {
				for i := range s.NumFields() {
					f.set[key(plain(kind.Type), s.Field(i))] = true
				}
			}
		}
	case *ast.AssignStmt:
		for _, to := range n.Lhs {
			f.target(info, to)
		}
	case *ast.RangeStmt:
		f.target(info, n.Key)
		f.target(info, n.Value)
	case *ast.IncDecStmt:
		f.target(info, n.X)
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			f.target(info, n.X)
		}
	case *ast.SelectorExpr: // a method of the field's address may set it
		if s := info.Selections[n]; s != nil && s.Kind() == types.MethodVal && !s.Indirect() {
			if _, byAddress := s.Obj().Type().(*types.Signature).Recv().Type().(*types.Pointer); byAddress {
				f.target(info, n.X)
			}
		}
	}
}

func (f *fields) literal(info *types.Info, n *ast.CompositeLit) {
	owner := plain(info.Types[n].Type)
	if owner == nil {
		return
	}
	s, isStruct := owner.Underlying().(*types.Struct)
	if !isStruct {
		return
	}
	for i, element := range n.Elts {
		pair, named := element.(*ast.KeyValueExpr)
		if !named {
			f.set[key(owner, s.Field(i))] = true
			continue
		}
		if name, isIdent := pair.Key.(*ast.Ident); isIdent {
			f.set[owner.String()+"."+name.Name] = true
		}
	}
}

// target notes the fields on the way to what is set.
func (f *fields) target(info *types.Info, to ast.Expr) {
	for {
		switch at := to.(type) {
		case *ast.SelectorExpr:
			if s := info.Selections[at]; s != nil && s.Kind() == types.FieldVal {
				owner := plain(s.Recv())
				for _, step := range s.Index()[:len(s.Index())-1] {
					owner = plain(owner.Underlying().(*types.Struct).Field(step).Type())
				}
				f.set[key(owner, s.Obj().(*types.Var))] = true
			}
			to = at.X
		case *ast.IndexExpr:
			to = at.X
		case *ast.ParenExpr:
			to = at.X
		case *ast.StarExpr:
			to = at.X
		case *ast.SliceExpr:
			to = at.X
		default:
			return
		}
	}
}

// plain returns a type without its pointer.
func plain(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	if p, isPointer := types.Unalias(t).(*types.Pointer); isPointer {
		t = p.Elem()
	}
	return types.Unalias(t)
}
