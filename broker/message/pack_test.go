package message

import (
	"reflect"
	"testing"
	"time"
)

// TestPackKeepsEveryField: a request in which one field is set is equal after Pack and Unpack. A new field that Pack
// does not encode fails here.
func TestPackKeepsEveryField(t *testing.T) {
	var all Request
	for i := range reflect.TypeFor[Request]().NumField() {
		name := reflect.TypeFor[Request]().Field(i).Name
		var r Request
		if name == "origin" {
			continue // see TestPackKeepsOrigin
		}
		fill(t, reflect.ValueOf(&r).Elem().Field(i))
		roundTrip(t, name, r)
		reflect.ValueOf(&all).Elem().Field(i).Set(reflect.ValueOf(r).Field(i))
	}
	roundTrip(t, "all", all)
}

// TestPackKeepsOrigin: an origin in which one field is set is equal after Pack and Unpack.
func TestPackKeepsOrigin(t *testing.T) {
	var all Origin
	for i := range reflect.TypeFor[Origin]().NumField() {
		var o Origin
		fill(t, reflect.ValueOf(&o).Elem().Field(i))
		roundTrip(t, reflect.TypeFor[Origin]().Field(i).Name, Request{}.WithOrigin(o))
		reflect.ValueOf(&all).Elem().Field(i).Set(reflect.ValueOf(o).Field(i))
	}
	roundTrip(t, "all", Request{ID: "x", User: Header{"X-A": {"1"}}}.WithOrigin(all))
}

// roundTrip packs and unpacks a request.
func roundTrip(t *testing.T, name string, r Request) {
	t.Helper()
	b := r.Pack([]byte("before"))
	if got := Unpack(string(b[len("before"):])); !reflect.DeepEqual(got, r) {
		t.Errorf("%s: unpacked is\n%+v, want\n%+v", name, got, r)
	}
}

// fill sets a field to a value that is not its zero value.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)))
		return
	case Header:
		v.Set(reflect.ValueOf(Header{"X-A": {"1", ""}, "x-a": {"\r\x00é"}, "": {}}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("DELAY_30m-1-2")
	case reflect.Int:
		v.SetInt(1 << 40)
	case reflect.Uint64:
		v.SetUint(1 << 63)
	case reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("a field of the kind %s", v.Kind())
	}
}

// BenchmarkPack measures packing and unpacking a request without headers.
func BenchmarkPack(b *testing.B) {
	at := time.Now().UTC()
	r := Request{
		ID: "DELAY_30m-1234-1732060800000000000", Subject: "delay.30m.orders.expire", Accepted: at, Due: at,
		Target: "orders.expire",
	}
	var buffer []byte
	b.Run("pack", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buffer = r.Pack(buffer[:0])
		}
	})
	b.Run("unpack", func(b *testing.B) {
		s := string(buffer)
		b.ReportAllocs()
		for b.Loop() {
			r = Unpack(s)
		}
	})
}
