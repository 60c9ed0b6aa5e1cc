"""A cloud for tests: a synthesized stack on moto, its functions as processes, its requests kept.

assembly                  what the CDK app synthesized: template, code and other assets
server shims recording    moto's server, what its CloudFormation lacks, and what it was asked
running deployment        that server running; a stack on it: roles, policies, functions, machine
engine adapter runtime    its workflow on the local engine, its functions in processes of their own
requests expected         what was asked, and what AWS itself does, as uses of permissions
iam audit                 what policies allow, and whether that was enough
static_checks             what other programs find in templates, policies and definitions
"""
