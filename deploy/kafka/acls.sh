#!/bin/sh
# Who may do what on the topics of one installation, for Kafka's own authorizer:
#   authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
#   allow.everyone.if.no.acl.found=false
# Run it once as a super user, before `stream-car topics apply`; the principals are users of your listener:
#   KAFKA_ACLS="kafka-acls.sh --bootstrap-server localhost:9092 --command-config super-user.properties" \
#     sh deploy/kafka/acls.sh streamcar
set -eu
acls=${KAFKA_ACLS:-kafka-acls.sh --bootstrap-server localhost:9092}
prefix=${1:-streamcar}
group=${2:-$prefix}.workers  # with --namespace: the namespace

allow() {
    principal=$1
    shift
    $acls --add --allow-principal "User:$principal" "$@"
}

# those who publish and subscribe with clients of their own
allow publisher --operation Write --operation Describe --topic "$prefix.documents"
allow subscriber --operation Read --operation Describe --topic "$prefix.changes"

# `stream-car topics`: it creates the topics and makes their key
allow admin --operation Create --operation Describe --operation DescribeConfigs \
    --topic "$prefix." --resource-pattern-type prefixed
allow admin --operation Write --topic "$prefix.keys"

# `stream-car worker`: it forwards documents, and it alone writes placements, changes and rejected input
allow worker --operation Read --operation Describe --group "$group"
allow worker --operation Describe --operation DescribeConfigs --topic "$prefix." --resource-pattern-type prefixed
allow worker --operation DescribeConfigs --cluster  # how short a session the brokers accept
for topic in documents placements changes keys; do
    allow worker --operation Read --topic "$prefix.$topic"
done
for topic in documents placements changes rejected; do
    allow worker --operation Write --topic "$prefix.$topic"
done

# `stream-car query-worker`: it publishes for its callers, and reads
allow query-worker --operation Describe --operation DescribeConfigs --operation Read \
    --topic "$prefix." --resource-pattern-type prefixed
allow query-worker --operation Write --topic "$prefix.documents"
