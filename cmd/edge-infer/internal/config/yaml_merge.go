package config

import (
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// resolveMerges replaces the merge keys (<<) of a file by the entries that they stand for, except those that the mapping has itself:
// its own values win, and of several bases the first. It reports whether there were any. A base that does not exist is left to the decoder.
// Source: https://yaml.org/type/merge.html
func resolveMerges(file *ast.File) bool {
	m := merges{anchors: map[string]ast.Node{}}
	for _, document := range file.Docs {
		m.resolve(document.Body)
	}
	return m.found
}

// merges is the state of one pass over a document, in the order of the text.
type merges struct {
	anchors map[string]ast.Node
	found   bool
}

func (m *merges) resolve(node ast.Node) {
	switch n := node.(type) {
	case *ast.AnchorNode:
		m.resolve(n.Value)
		m.anchors[n.Name.GetToken().Value] = n.Value // not within itself
	case *ast.TagNode:
		m.resolve(n.Value)
	case *ast.SequenceNode:
		for _, value := range n.Values {
			m.resolve(value)
		}
	case *ast.MappingValueNode:
		m.resolve(n.Value)
	case *ast.MappingNode:
		for _, value := range n.Values {
			m.resolve(value.Value)
		}
		if slices.ContainsFunc(n.Values, isMerge) {
			m.mapping(n)
		}
	}
}

func isMerge(value *ast.MappingValueNode) bool { return value.Key.IsMergeKey() }

// mapping replaces the merge keys of one mapping.
func (m *merges) mapping(n *ast.MappingNode) {
	taken := map[string]bool{}
	for _, value := range n.Values {
		if !isMerge(value) {
			taken[value.Key.GetToken().Value] = true
		}
	}
	var all []*ast.MappingValueNode
	for _, value := range n.Values {
		bases, known := []*ast.MappingValueNode(nil), false
		if isMerge(value) {
			bases, known = m.entries(value.Value)
		}
		if !known {
			all = append(all, value)
			continue
		}
		m.found = true
		for _, base := range bases {
			if key := base.Key.GetToken().Value; !taken[key] {
				taken[key] = true
				all = append(all, base)
			}
		}
	}
	n.Values = all
}

// entries returns the entries of a base: a mapping, a reference to one, or a list of these.
func (m *merges) entries(node ast.Node) (all []*ast.MappingValueNode, known bool) {
	switch n := node.(type) {
	case *ast.AnchorNode:
		return m.entries(n.Value)
	case *ast.TagNode:
		return m.entries(n.Value)
	case *ast.AliasNode:
		return m.entries(m.anchors[n.Value.GetToken().Value])
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		if isMerge(n) {
			return m.entries(n.Value)
		}
		return []*ast.MappingValueNode{n}, true
	case *ast.SequenceNode:
		for _, value := range n.Values {
			more, known := m.entries(value)
			if !known {
				return nil, false
			}
			all = append(all, more...)
		}
		return all, true
	}
	return nil, false
}
