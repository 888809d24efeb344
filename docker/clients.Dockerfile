# Clients for compose.yaml: kcat, and the test program of librdkafka's C interface.
FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends kcat librdkafka-dev gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
COPY protocol-tests/clients/librdkafka/client.c /src/client.c
RUN gcc -O1 -Wall -Werror -o /usr/local/bin/librdkafka-client /src/client.c -lrdkafka
USER nobody
