package engine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// pair is one entry of a dictionary, in source order.
type pair struct{ key, value any }

// literal parses the subset of Python and JSON literals found in model metadata: strings, numbers, True/False/None, lists, tuples and
// dictionaries.
type literal struct {
	text  string
	at    int
	depth int
}

const maxLiteralDepth = 16

// parseLiteral returns string, float64, bool, nil, []any or []pair.
func parseLiteral(text string) (any, error) {
	p := literal{text: text}
	value, err := p.value()
	if err != nil {
		return nil, err
	}
	if p.next() != 0 || p.at < len(p.text) {
		return nil, p.unexpected()
	}
	return value, nil
}

// next skips white space and returns the byte at the cursor, 0 at the end.
func (p *literal) next() byte {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *literal) unexpected() error {
	if p.at >= len(p.text) {
		return errors.New("ends too early")
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return fmt.Errorf("unexpected %q at byte %d", r, p.at)
}

func (p *literal) value() (any, error) {
	switch c := p.next(); {
	case c == '{':
		return p.dictionary()
	case c == '[':
		return p.list(']')
	case c == '(':
		return p.list(')')
	case c == '\'' || c == '"':
		return p.quoted()
	case c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.':
		return p.number()
	}
	for word, value := range map[string]any{"True": true, "true": true, "False": false, "false": false, "None": nil, "null": nil} {
		if strings.HasPrefix(p.text[p.at:], word) {
			p.at += len(word)
			return value, nil
		}
	}
	// Python 2 wrote u'text'.
	if rest := p.text[p.at:]; strings.HasPrefix(rest, "u'") || strings.HasPrefix(rest, `u"`) {
		p.at++
		return p.quoted()
	}
	return nil, p.unexpected()
}

func (p *literal) enter() error {
	p.at++
	if p.depth++; p.depth > maxLiteralDepth {
		return errors.New("nested too deeply")
	}
	return nil
}

func (p *literal) list(end byte) (any, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	list := []any{}
	for p.next() != end {
		value, err := p.value()
		if err != nil {
			return nil, err
		}
		list = append(list, value)
		if err := p.separator(end); err != nil {
			return nil, err
		}
	}
	p.at++
	p.depth--
	return list, nil
}

func (p *literal) dictionary() (any, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	pairs := []pair{}
	for p.next() != '}' {
		key, err := p.value()
		if err != nil {
			return nil, err
		}
		if p.next() != ':' {
			return nil, p.unexpected()
		}
		p.at++
		value, err := p.value()
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{key, value})
		if err := p.separator('}'); err != nil {
			return nil, err
		}
	}
	p.at++
	p.depth--
	return pairs, nil
}

// separator consumes a comma, or stops before the closing bracket.
func (p *literal) separator(end byte) error {
	switch p.next() {
	case ',':
		p.at++
	case end:
	default:
		return p.unexpected()
	}
	return nil
}

func (p *literal) number() (any, error) {
	start := p.at
	for p.at < len(p.text) && strings.IndexByte("+-.0123456789eE", p.text[p.at]) >= 0 {
		p.at++
	}
	n, err := strconv.ParseFloat(p.text[start:p.at], 64)
	if err != nil {
		return nil, fmt.Errorf("%.40q is not a number", p.text[start:p.at])
	}
	return n, nil
}

func (p *literal) quoted() (any, error) {
	quote := p.text[p.at]
	p.at++
	var out strings.Builder
	for p.at < len(p.text) {
		switch c := p.text[p.at]; c {
		case quote:
			p.at++
			return strings.ToValidUTF8(out.String(), "\uFFFD"), nil
		case '\\':
			if err := p.escape(&out); err != nil {
				return nil, err
			}
		default:
			out.WriteByte(c)
			p.at++
		}
	}
	return nil, errors.New("a text has no closing quote")
}

// escape consumes one backslash sequence. As in Python, unknown sequences keep their backslash.
func (p *literal) escape(out *strings.Builder) error {
	if p.at+1 >= len(p.text) {
		return errors.New("a text has no closing quote")
	}
	const plain, meaning = `\'"/abfnrtv`, "\\'\"/\a\b\f\n\r\t\v"
	c := p.text[p.at+1]
	if i := strings.IndexByte(plain, c); i >= 0 {
		out.WriteByte(meaning[i])
		p.at += 2
		return nil
	}
	switch c {
	case '\n':
		p.at += 2
	case 'x', 'u', 'U':
		r, err := p.hexadecimal()
		if err != nil {
			return err
		}
		// JSON writes runes above U+FFFF as two escapes.
		if utf16.IsSurrogate(r) && strings.HasPrefix(p.text[p.at:], `\u`) {
			low, err := p.hexadecimal()
			if err != nil {
				return err
			}
			r = utf16.DecodeRune(r, low)
		}
		out.WriteRune(r)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		p.at++
		var r rune
		for n := 0; n < 3 && p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '7'; n++ {
			r = r*8 + rune(p.text[p.at]-'0')
			p.at++
		}
		out.WriteRune(r)
	default:
		out.WriteByte('\\')
		p.at++
	}
	return nil
}

// hexadecimal consumes \xHH, \uHHHH or \UHHHHHHHH.
func (p *literal) hexadecimal() (rune, error) {
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[p.text[p.at+1]]
	start := p.at + 2
	if start+digits > len(p.text) {
		return 0, fmt.Errorf("escape at byte %d is cut short", p.at)
	}
	n, err := strconv.ParseUint(p.text[start:start+digits], 16, 32)
	if err != nil || n > utf8.MaxRune {
		return 0, fmt.Errorf("escape at byte %d is not a character", p.at)
	}
	p.at = start + digits
	return rune(n), nil
}
