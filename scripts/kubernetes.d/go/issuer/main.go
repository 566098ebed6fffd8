// Issuer is an authorization server for the trial: metadata, keys, and a token for every request.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"time"
)

const keyID = "trial"

var encoding = base64.RawURLEncoding

func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		log.Fatal(err)
	}
	return encoding.EncodeToString(text)
}

// sign makes a JWT of the claims (RFC 7519, RFC 9068).
func sign(key *ecdsa.PrivateKey, claims map[string]any) string {
	signed := encoded(map[string]string{"alg": "ES256", "typ": "at+jwt", "kid": keyID}) + "." + encoded(claims)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		log.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + encoding.EncodeToString(signature)
}

func answer(writer http.ResponseWriter, value any) {
	writer.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(writer).Encode(value); err != nil {
		log.Print(err)
	}
}

func main() {
	issuer := flag.String("issuer", "", "the issuer identifier, an https URL without a path")
	certificate := flag.String("certificate", "", "file with the certificate")
	privateKey := flag.String("key", "", "file with its key")
	listen := flag.String("listen", ":8443", "address to listen on")
	flag.Parse()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		log.Fatal(err)
	}
	keys := map[string]any{"keys": []map[string]string{{
		"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": keyID,
		"x": encoding.EncodeToString(point[1:33]), "y": encoding.EncodeToString(point[33:]),
	}}}
	metadata := map[string]any{
		"issuer": *issuer, "jwks_uri": *issuer + "/keys", "token_endpoint": *issuer + "/token",
		"authorization_endpoint":   *issuer + "/authorize",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
	}
	http.HandleFunc("/.well-known/oauth-authorization-server", func(writer http.ResponseWriter, _ *http.Request) {
		answer(writer, metadata)
	})
	http.HandleFunc("/keys", func(writer http.ResponseWriter, _ *http.Request) { answer(writer, keys) })
	http.HandleFunc("/token", func(writer http.ResponseWriter, request *http.Request) {
		now := time.Now()
		answer(writer, map[string]any{"token_type": "Bearer", "expires_in": 600, "access_token": sign(key, map[string]any{
			"iss": *issuer, "sub": "alice", "aud": request.FormValue("resource"), "client_id": "trial",
			"iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(), "jti": rand.Text(),
		})})
	})
	log.Fatal(http.ListenAndServeTLS(*listen, *certificate, *privateKey, nil))
}
