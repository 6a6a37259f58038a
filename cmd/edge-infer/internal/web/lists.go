package web

import (
	"encoding"
	"encoding/json"
	"reflect"
)

// withLists returns a deep copy of value in which no slice or map is nil, so that JSON has [] and {} instead of null. Values that marshal
// themselves are not changed.
func withLists(value any) any {
	if value == nil {
		return nil
	}
	return filled(reflect.ValueOf(value)).Interface()
}

func filled(v reflect.Value) reflect.Value {
	switch v.Interface().(type) {
	case json.Marshaler, encoding.TextMarshaler, []byte:
		return v
	}
	switch v.Kind() {
	case reflect.Slice:
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			list.Index(i).Set(filled(v.Index(i)))
		}
		return list
	case reflect.Map:
		entries := reflect.MakeMapWithSize(v.Type(), v.Len())
		for key, value := range v.Seq2() {
			entries.SetMapIndex(key, filled(value))
		}
		return entries
	case reflect.Struct:
		fields := reflect.New(v.Type()).Elem()
		fields.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fields.Field(i).Set(filled(v.Field(i)))
			}
		}
		return fields
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v
		}
		if v.Kind() == reflect.Interface {
			return filled(v.Elem())
		}
		target := reflect.New(v.Type().Elem())
		target.Elem().Set(filled(v.Elem()))
		return target
	}
	return v
}
