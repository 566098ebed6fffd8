package shoal

import (
	"testing"

	"google.golang.org/protobuf/proto"
)

func TestAnErrorThatCannotBeSentIsMadeSuchThatItCan(t *testing.T) {
	err := &RPCError{Code: 1, Message: "a\xffb", Data: []byte("{no json")}
	said := err.proto()
	if _, err := proto.Marshal(said); err != nil {
		t.Fatal(err)
	}
	if said.GetMessage() != "a?b" || said.Data != nil {
		t.Fatalf("%v", said)
	}
}
